// The inspection of a schema of PostgreSQL, and its own checks.
#pragma once

#include "care/inspection.hpp"
#include "postgres/core.hpp"

#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {

/// Threads: one at a time.
class ServerInspection final : public care::Inspection {
 public:
  ServerInspection(Core& core, FunctionRef<void(const Problem&)> report,
                   const VerifyOptions& options);

  database::Database& database() noexcept override { return core_; }
  /// As `read`, for PostgreSQL's own statements.
  bool query(FunctionRef<void(Connection&)> work);
  void check_schema(std::string_view module, std::span<const database::Migration> migrations,
                    std::span<const database::Migration> on_postgres) override;
  std::unique_ptr<database::EventReader> make_reader() override;

  const ConnectionOptions& server() const noexcept { return core_.connection_options(); }

 private:
  void attempt(database::Database::Work work) override { database().read(work); }
  std::string advice_on_damage() override;

  Core& core_;
  KindTable kinds_;
};

void check_own_schema(ServerInspection& inspection);
void check_indexes(ServerInspection& inspection);

}  // namespace stela::postgres
