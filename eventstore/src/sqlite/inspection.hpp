// What a check can ask of the database that it looks at, and how it says what it found.
#pragma once

#include "sqlite/core.hpp"
#include "sqlite/migration.hpp"

#include <stela/eventstore/verify.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sqlite {

/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Inspection {
 public:
  Inspection(Store& store, FunctionRef<void(const Problem&)> report, const VerifyOptions& options);

  /// Makes one check, to its end or until it has found too much.
  void run(Check& check);

  /// Runs `work`, for a page of rows, in a read transaction of its own. What SQLite can't read is
  /// a problem and false. It ends the check if the caller asked to stop.
  bool read(FunctionRef<void(Connection&)> work);
  /// As `read`, but returns what went wrong.
  std::optional<std::string> try_read(FunctionRef<void(Connection&)> work);

  /// The caller hears of it when the page that is being read is over.
  void report(std::string where, std::string what, std::string advice);
  /// The advice is that on a damaged file.
  void report(std::string where, std::string what);
  /// It isn't a problem: the caller finds it in the result, once for each table.
  void leave_unchecked(std::string table, std::string why);
  /// Between pages.
  void progress(std::int64_t done, std::int64_t total);

  const VerifyOptions& options() const noexcept { return options_; }
  Store& store() noexcept { return store_; }
  VerifyResult& result() noexcept { return result_; }

 private:
  struct EndOfCheck {};

  void read_now(Connection& connection, FunctionRef<void(Connection&)> work);
  void hand_out();

  Store& store_;
  FunctionRef<void(const Problem&)> report_;
  const VerifyOptions& options_;
  /// A connection of its own, so that pages come from the disk and not from a reader's cache; null
  /// for a database in memory.
  std::unique_ptr<Connection> connection_;
  std::string_view check_;
  std::int64_t problems_of_check_ = 0;
  std::vector<Problem> found_;
  VerifyResult result_;
};

/// Reports what differs from the tables, indexes and triggers that these migrations make, and from
/// how the ledger notes them. The last of them may be missing: the database waits for them.
STELA_EVENTSTORE_EXPORT void check_schema(Inspection& inspection, std::string_view module,
                                          std::span<const Migration> migrations);

/// The checks of the event store itself.
void check_file(Inspection& inspection);
void check_header(Inspection& inspection);
void check_facts(Inspection& inspection);
void check_streams(Inspection& inspection);
void check_kinds(Inspection& inspection);
void check_append_ids(Inspection& inspection);
void check_snapshots(Inspection& inspection);
void check_events(Inspection& inspection);

}  // namespace stela::sqlite
