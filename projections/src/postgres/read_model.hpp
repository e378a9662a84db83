// A read model in the store's own database, on PostgreSQL.
#pragma once

#include "build_model.hpp"

#include "database/postgres/user_statement.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace stela::projections {

/// The schema of the tables of `build`. A name that is too long for PostgreSQL ends in a checksum.
std::string schema_of(const postgres::Connection& connection, const Build& build);

/// The search_path leads its statements to the build's tables first, so {orders} is "orders".
/// Threads: inside the writer's transactions only.
class PostgresReadModel final : public BuildModel {
 public:
  explicit PostgresReadModel(const Build& build) : build_{build}, who_{build.describe()} {}

  std::string table(std::string_view name) const override {
    return build_.prefix() + std::string{name};
  }
  void allow_creation(bool allowed) noexcept override { creating_ = allowed; }
  std::exception_ptr take_store_failure() noexcept override {
    return std::exchange(store_failure_, {});
  }
  void attempt(database::Connection& connection, FunctionRef<void()> work) override;

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;

 private:
  void attempt_once(FunctionRef<void()> work);
  std::int64_t run_checked(std::string_view sql, std::span<const SqlValue> values, Rows* rows);
  void note_refusal() noexcept;
  void check(const postgres::UserStatement& statement) const;
  std::string checked_text(const postgres::UserStatement& statement);

  struct CheckedText {
    std::string text;
    std::size_t values;
  };
  static constexpr std::size_t max_checked = 256;

  const Build build_;
  const std::string who_;
  std::exception_ptr store_failure_;
  bool creating_ = false;
  std::map<std::string, CheckedText, std::less<>> checked_;
  // State of an attempt.
  postgres::Connection* connection_ = nullptr;
  /// The search_path by which its tables are found.
  std::string path_;
  /// A statement has failed, and the server refuses the rest.
  bool is_spoilt_ = false;
  /// Each statement has a savepoint.
  bool is_careful_ = false;
};

}  // namespace stela::projections
