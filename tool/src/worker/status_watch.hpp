// The outbox's status for several who look at it often.
#pragma once

#include "database_place.hpp"
#include "diagnosis/diagnose.hpp"
#include "worker/statistics.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/outbox/operations.hpp>

#include <mutex>
#include <string>

namespace stela::tool {

/// Asks the database no more often than somebody needs it, and times what was published meanwhile.
/// Threads: any.
class StatusWatch {
 public:
  /// All must outlive it.
  StatusWatch(const DatabasePlace& place, Store& store, OutboxOperations& operations,
              Statistics& statistics)
      : place_{place}, store_{store}, operations_{operations}, statistics_{statistics} {}

  struct Seen {
    OutboxStatus status = {};
    /// What follows the log, and what operators know.
    Facts beside = {};
    /// Why the database doesn't answer, or can't be written to; empty if it does and can.
    std::string problem = {};
    /// The status is that of an earlier look: the database didn't answer at this one.
    bool is_stale = false;
  };
  /// As it was no longer ago than `age`; what was known last if the database doesn't answer.
  Seen look(std::chrono::milliseconds age);

  /// As `look`; and also whether this program still understands the database,
  /// which another one may have migrated.
  Seen look_closely(std::chrono::milliseconds age);

  /// For what the status doesn't have. False if the database doesn't answer.
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
