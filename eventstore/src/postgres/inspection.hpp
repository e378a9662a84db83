// The looking at a schema of PostgreSQL, and the checks of the event store itself.
#pragma once

#include "database/inspection.hpp"
#include "postgres/core.hpp"

#include <stela/eventstore/verify.hpp>
#include <stela/framework/function_ref.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::postgres {

/// Threads: one at a time.
class ServerInspection final : public database::Inspection {
 public:
  ServerInspection(Core& core, FunctionRef<void(const Problem&)> report,
                   const VerifyOptions& options);

  /// Makes one check, to its end or until it has found too much.
  void run(IntegrityCheck& check);

  database::Database& database() noexcept override { return core_; }
  bool read(database::Database::Work work) override;
  bool read(FunctionRef<void(Connection&)> work);
  /// As `read`, but returns what went wrong.
  std::optional<std::string> try_read(FunctionRef<void(Connection&)> work);

  void report(std::string where, std::string what, std::string advice) override;
  void report(std::string where, std::string what) override;
  /// It isn't a problem: the caller finds it in the result.
  void leave_unchecked(std::string what, std::string why);
  void progress(std::int64_t done, std::int64_t total) override;
  void check_schema(std::string_view module, std::span<const database::Migration> migrations,
                    std::span<const database::Migration> on_postgres) override;

  const VerifyOptions& options() const noexcept { return options_; }
  const ConnectionOptions& server() const noexcept { return core_.connection_options(); }
  VerifyResult& result() noexcept { return result_; }

 private:
  struct EndOfCheck {};

  void hand_out();

  Core& core_;
  FunctionRef<void(const Problem&)> report_;
  const VerifyOptions& options_;
  std::string_view check_;
  std::int64_t problems_of_check_ = 0;
  std::vector<Problem> found_;
  VerifyResult result_;
};

/// The checks of the event store itself.
void check_own_schema(ServerInspection& inspection);
void check_indexes(ServerInspection& inspection);
void check_streams(ServerInspection& inspection);
void check_kinds(ServerInspection& inspection);
void check_events(ServerInspection& inspection);
void check_tags(ServerInspection& inspection);
void check_append_ids(ServerInspection& inspection);
void check_append_groups(ServerInspection& inspection);
void check_snapshots(ServerInspection& inspection);

}  // namespace stela::postgres
