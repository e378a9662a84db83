// The looking at an SQLite file, and the checks of the event store itself.
#pragma once

#include "database/inspection.hpp"
#include "sqlite/core.hpp"

#include <stela/eventstore/operations.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sqlite {

/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT FileInspection final : public database::Inspection {
 public:
  FileInspection(Store& store, FunctionRef<void(const Problem&)> report,
                 const VerifyOptions& options);

  /// Makes one check, to its end or until it has found too much.
  void run(IntegrityCheck& check);

  database::Database& database() noexcept override { return store_.database(); }
  bool read(database::Database::Work work) override;
  bool read(FunctionRef<void(Connection&)> work);
  /// As `read`, but returns what went wrong.
  std::optional<std::string> try_read(FunctionRef<void(Connection&)> work);

  void report(std::string where, std::string what, std::string advice) override;
  void report(std::string where, std::string what) override;
  /// It isn't a problem: the caller finds it in the result, once for each table.
  void leave_unchecked(std::string table, std::string why);
  void progress(std::int64_t done, std::int64_t total) override;
  void check_schema(std::string_view module, std::span<const database::Migration> migrations,
                    std::span<const database::Migration> on_postgres) override;

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

/// The checks of the event store itself.
void check_file(FileInspection& inspection);
void check_header(FileInspection& inspection);
void check_facts(FileInspection& inspection);
void check_streams(FileInspection& inspection);
void check_kinds(FileInspection& inspection);
void check_append_ids(FileInspection& inspection);
void check_snapshots(FileInspection& inspection);
void check_events(FileInspection& inspection);
void check_tags(FileInspection& inspection);

}  // namespace stela::sqlite
