// A read model in the store's own database.
#pragma once

#include "database/sqlite/driver.hpp"

#include <stela/projections/read_model.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace stela::projections {

/// Prepares each statement of the projector once. What a statement may do is checked when it is
/// prepared.
/// Threads: inside the writer's transactions only; it is destroyed outside of them or inside.
class SqliteReadModel final : public ReadModel {
 public:
  /// `who` is for messages; tables are called `prefix` and their plain name.
  SqliteReadModel(sqlite::Driver& driver, std::string who, std::string prefix);
  ~SqliteReadModel() override;

  std::string table(std::string_view name) const override { return prefix_ + std::string{name}; }

  /// While true, tables may be made.
  void allow_creation(bool allowed) noexcept { creating_ = allowed; }

  /// What made the database fail, not the projector: set aside when a statement throws it, since
  /// the projector's own code may have wrapped or swallowed it.
  std::exception_ptr take_store_failure() noexcept { return std::exchange(store_failure_, {}); }

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;

 private:
  static constexpr std::size_t max_statements = 256;

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  static int authorize(void* self, int action, const char* first, const char* second,
                       const char* database, const char* trigger) noexcept;
  bool allows(int action, std::string_view object) noexcept;

  sqlite3_stmt* statement(std::string_view sql);
  Statement prepare(std::string_view sql);
  [[noreturn]] void fail(int code, std::string_view sql);
  /// The plain name; empty if there is no such index.
  std::string table_of_index(std::string_view name);

  sqlite::Driver& driver_;
  const std::string who_;
  const std::string prefix_;
  std::unordered_map<std::string, Statement, TextHash, std::equal_to<>> statements_;
  std::string refusal_;
  std::exception_ptr store_failure_;
  bool creating_ = false;
};

/// Binds parameters from 1 on. UsageError if the statement has another number of them.
void bind_all(sqlite3* database, sqlite3_stmt* statement, std::span<const SqlValue> values);
/// Steps to the end; the rows go to `rows` unless it is null. SQLite's code.
int run_all(sqlite3_stmt* statement, Rows* rows);
/// The first of a statement, behind blanks and comments.
std::string_view first_word(std::string_view sql) noexcept;
/// Writes {name} as "<prefix>name", but for what stands in quotes or comments.
std::string with_table_names(std::string_view sql, std::string_view prefix);

}  // namespace stela::projections
