// SQL of somebody else's on a connection of Stela's.
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

/// Prepares each statement once, when it is checked for what it may do. Statements that change the
/// schema aren't kept, and nothing that was prepared before them is.
/// Threads: those of the connection.
class STELA_EVENTSTORE_EXPORT CallerSql {
 public:
  /// What a statement is about to do, as SQLite's authorizer tells it.
  struct Action {
    int code;
    std::string_view object;
    /// Of an index or a trigger, its table; what ALTER TABLE alters.
    std::string_view second;
    std::string_view database;
  };

  /// `who` is for messages, and may be empty.
  explicit CallerSql(std::string who) : who_{std::move(who)} {}
  virtual ~CallerSql() = default;
  CallerSql(const CallerSql&) = delete;
  CallerSql& operator=(const CallerSql&) = delete;

  /// Runs one statement in the open transaction of `connection`, which must always be the same. How
  /// many rows it changed. Fills `rows` unless it is null.
  std::int64_t run_on(Connection& connection, std::string_view sql,
                      std::span<const SqlValue> values, Rows* rows);

  bool has_statements() const noexcept { return !statements_.empty(); }
  /// Lets go of all statements, before their connection ends.
  void clear() noexcept { statements_.clear(); }
  /// They are left to nobody: of a forked child.
  void abandon() noexcept;

 protected:
  /// Empty if it may be done; else why not.
  virtual std::string refusal_of(const Action& action) = 0;
  /// What SQLite is given for `sql`.
  virtual std::string translated(std::string_view sql) const { return std::string{sql}; }
  /// What the names of the caller's tables begin with in the database.
  virtual std::string_view prefix() const noexcept { return {}; }
  /// UsageError if something else is wrong with a statement.
  virtual void check(sqlite3_stmt*) const {}
  /// The database failed, not the caller: what is being handled.
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
  // Of the statement that is prepared.
  std::string refusal_;
  bool changes_schema_ = false;
};

/// Binds parameters from 1 on. UsageError if the statement has another number of them.
STELA_EVENTSTORE_EXPORT void bind_all(sqlite3* database, sqlite3_stmt* statement,
                                      std::span<const SqlValue> values);
/// Steps to the end; the rows go to `rows` unless it is null. SQLite's code.
STELA_EVENTSTORE_EXPORT int run_all(sqlite3_stmt* statement, Rows* rows);

}  // namespace stela::sqlite
