// The inspection of an SQLite file, and its own checks.
#pragma once

#include "care/inspection.hpp"
#include "sqlite/core.hpp"

#include <stela/eventstore/operations.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// Threads: one at a time.
class FileInspection final : public care::Inspection {
 public:
  FileInspection(Store& store, FunctionRef<void(const Problem&)> report,
                 const VerifyOptions& options);

  database::Database& database() noexcept override { return store_.database(); }
  /// As `read`, for SQLite's own statements.
  bool query(FunctionRef<void(Connection&)> work);
  void report(std::string where, std::string what, std::string advice) override;
  using care::Inspection::report;
  void check_schema(std::string_view module, std::span<const database::Migration> migrations,
                    std::span<const database::Migration> on_postgres) override;
  std::unique_ptr<database::EventReader> make_reader() override;

  Store& store() noexcept { return store_; }

 private:
  void check_place() override;
  void attempt(database::Database::Work work) override;
  std::string advice_on_damage() override;

  Store& store_;
  /// A separate connection, so that pages come from the disk and not from a reader's cache; null
  /// for a database in memory.
  std::unique_ptr<Connection> connection_;
  KindTable kinds_;
};

void check_file(FileInspection& inspection);
void check_header(FileInspection& inspection);
void check_facts(FileInspection& inspection);

}  // namespace stela::sqlite
