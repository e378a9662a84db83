// Runs foreign SQL on Stela's connections.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/rows.hpp>
#include <stela/framework/error.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stela::sqlite {

/// Prepares each statement once, checking what it may do. A statement that changes the schema isn't
/// kept, and invalidates the kept ones.
/// Threads: those of the connection.
class STELA_EVENTSTORE_EXPORT CallerSql {
 public:
  /// An action of a statement, as SQLite's authorizer reports it.
  struct Action {
    int code;
    std::string_view object;
    /// The table of an index or a trigger; the object of an ALTER TABLE.
    std::string_view second;
    std::string_view database;
  };

  /// `who` names the caller in messages, and may be empty.
  explicit CallerSql(std::string who) : who_{std::move(who)} {}
  virtual ~CallerSql() = default;
  CallerSql(const CallerSql&) = delete;
  CallerSql& operator=(const CallerSql&) = delete;

  /// Runs one statement in the open transaction of `connection`, which must always be the same.
  /// Returns how many rows it changed, and fills `rows` unless it is null.
  std::int64_t run_on(Connection& connection, std::string_view sql,
                      std::span<const SqlValue> values, Rows* rows);

  bool has_statements() const noexcept { return !statements_.empty(); }
  /// Releases all statements, before their connection ends.
  void clear() noexcept { statements_.clear(); }
  /// Leaks them, in a forked child.
  void abandon() noexcept;

 protected:
  /// Why the action is refused; empty if it is allowed.
  virtual std::string refusal_of(const Action& action) = 0;
  /// The text for SQLite.
  virtual std::string translated(std::string_view sql) const { return std::string{sql}; }
  /// The prefix of the caller's tables in the database.
  virtual std::string_view prefix() const noexcept { return {}; }
  /// UsageError if the statement is wrong in another way.
  virtual void check(sqlite3_stmt*) const {}
  /// Called while an exception is handled that is the database's failure, not the caller's.
  virtual void note_store_failure() noexcept {}

 private:
  static constexpr std::size_t max_statements = 256;

  using Statement = PreparedStatement::Owner;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  static int authorize(void* self, int action, const char* first, const char* second,
                       const char* database, const char* trigger) noexcept;

  std::int64_t run_checked(Connection& connection, std::string_view sql,
                           std::span<const SqlValue> values, Rows* rows);
  std::int64_t run(Connection& connection, sqlite3_stmt* statement, std::string_view sql,
                   std::span<const SqlValue> values, Rows* rows);
  Statement prepare(Connection& connection, std::string_view sql);
  std::string say(std::string_view sql) const;
  [[noreturn]] void fail(Connection& connection, int code, std::string_view sql);

  const std::string who_;
  std::unordered_map<std::string, Statement, TextHash, std::equal_to<>> statements_;
  // These describe the statement being prepared.
  std::string refusal_;
  bool changes_schema_ = false;
};

/// Binds parameters from 1 on. UsageError if the statement has a different number of them.
STELA_EVENTSTORE_EXPORT void bind_all(sqlite3* database, sqlite3_stmt* statement,
                                      std::span<const SqlValue> values);
/// Steps to the end, and adds the rows to `rows` unless it is null. Returns SQLite's code.
STELA_EVENTSTORE_EXPORT int run_all(sqlite3_stmt* statement, Rows* rows);

}  // namespace stela::sqlite
