// The outbox's status, shared by several frequent readers.
#pragma once

#include "database_place.hpp"
#include "diagnosis/diagnose.hpp"
#include "worker/statistics.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/outbox/operations.hpp>

#include <mutex>
#include <string>

namespace stela::tool {

/// Queries the database no more often than a reader needs, and measures how long publications took
/// meanwhile. Threads: any.
class StatusWatch {
 public:
  /// All must outlive it.
  StatusWatch(const DatabasePlace& place, Store& store, OutboxOperations& operations,
              Statistics& statistics)
      : place_{place}, store_{store}, operations_{operations}, statistics_{statistics} {}

  struct Seen {
    OutboxStatus status = {};
    /// The followers of the log, and the operators' acknowledgements.
    Facts beside = {};
    /// Why the database doesn't answer, or can't be written to. Empty if all is well.
    std::string problem = {};
    /// The status is from an earlier look, because the database didn't answer now.
    bool is_stale = false;
  };
  /// The status, no older than `age`; the last known one if the database doesn't answer.
  Seen look(std::chrono::milliseconds age);

  /// As `look`, and checks that this program still understands the database, which another program
  /// may have migrated.
  Seen look_closely(std::chrono::milliseconds age);

  /// For data that the status lacks. False if the database doesn't answer.
  bool ask(FunctionRef<void(OutboxOperations&)> question);

 private:
  void time_publications();

  std::mutex mutex_;
  // All guarded by mutex_.
  const DatabasePlace& place_;
  Store& store_;
  OutboxOperations& operations_;
  Statistics& statistics_;
  Seen seen_;
  Steady looked_at_{};
  Timestamp timed_until_{};
  bool has_looked_ = false;
  std::string schema_problem_;
  Steady opened_at_{};
};

}  // namespace stela::tool
