#include "database/postgres/user_statement.hpp"

#include "database/postgres/sql_text.hpp"
#include "database/postgres/user_values.hpp"
#include "database/transaction.hpp"
#include "postgres_sql/user_sql.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace stela::postgres {
namespace {

/// The error text of stela.refuse_foreign_events.
constexpr std::string_view foreign_events = "it writes 'events', and that table is Stela's";

sql::set_user_settings statement_of(const UserSettings& settings) {
  return {.path = settings.path, .guard = settings.guard};
}

bool changes_rows(std::string_view command) noexcept {
  return command.starts_with("INSERT") || command.starts_with("UPDATE") ||
         command.starts_with("DELETE") || command.starts_with("MERGE");
}

/// Throws for the user's own mistake, or for a failure of the connection.
[[noreturn]] void fail(Connection& connection, const Result& result,
                       const UserStatement& statement) {
  constexpr std::array<std::string_view, 8> mistakes{"0A", "21", "22", "2B",
                                                     "3F", "42", "44", "P0"};
  const std::string_view state = state_of(result.get());
  const bool is_mistake =
      std::find(mistakes.begin(), mistakes.end(), state.substr(0, 2)) != mistakes.end() ||
      state == "25001" || state == "25006" ||
      // Unless one of Stela's statements was dropped or replaced.
      ((state == "26000" || state == "42P05") && connection.is_usable());
  if (!is_mistake) connection.fail(result.get(), statement.say());
  if (state == "25006") {
    statement.refuse("doesn't only read; read models are written by their projectors");
  }
  const char* const said = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
  constexpr std::string_view several = "cannot insert multiple commands";
  if (said != nullptr && std::string_view{said}.starts_with(several)) {
    statement.refuse("isn't one statement; run one at a time");
  }
  statement.refuse("failed: " + std::string{said != nullptr ? said : ""} + " (SQLSTATE " +
                   std::string{state} + ')');
}

std::int64_t take(const Result& result, Rows* rows) {
  if (rows != nullptr) *rows = rows_of(result);
  return changes_rows(result.command()) ? result.changes() : 0;
}

}  // namespace

void set(Connection& connection, const UserSettings& settings) {
  connection.run(statement_of(settings));
}

UserSettings own_settings(const Connection& connection) {
  return {own_path(connection.options().schema), "off"};
}

std::string users_path(const Connection& connection) {
  const std::string& path = connection.users_path();
  return path + (path.empty() ? "" : ", ") + own_path(connection.options().schema);
}

std::string UserStatement::say() const {
  return (who.empty() ? "" : std::string{who} + ": ") + '"' + std::string{sql} + '"';
}

void UserStatement::refuse(std::string_view why) const {
  throw UsageError{say().append(" ").append(why)};
}

std::int64_t run(Connection& connection, const UserStatement& statement, Rows* rows) {
  const Result result =
      connection.query_users(statement.text, statement.scope, to_parameters(statement.values));
  if (result.is_error()) fail(connection, result, statement);
  return take(result, rows);
}

std::int64_t run_between_savepoints(Connection& connection, const UserStatement& statement,
                                    const UserSettings* settings, Rows* rows) {
  const UserSettings own = own_settings(connection);
  Connection::Pipeline pipeline{connection};
  pipeline.add("SAVEPOINT stela_sql");
  if (settings != nullptr) pipeline.add(statement_of(*settings));
  pipeline.add_user(statement.text, to_parameters(statement.values));
  if (settings != nullptr) pipeline.add(statement_of(own));
  pipeline.add("RELEASE SAVEPOINT stela_sql");
  // After a failed statement, all others are aborted.
  const std::vector<Result> results = pipeline.run();
  for (const Result& each : results) {
    if (!each.is_error()) continue;
    if (connection.is_usable()) {
      connection.execute("ROLLBACK TO SAVEPOINT stela_sql; RELEASE SAVEPOINT stela_sql");
    }
    fail(connection, each, statement);
  }
  return take(results[settings != nullptr ? 2 : 1], rows);
}

std::size_t add_deferred(Connection::Pipeline& pipeline, const UserSettings& settings) {
  pipeline.add(statement_of(settings));
  pipeline.add("SET CONSTRAINTS ALL IMMEDIATE");
  return 2;
}

void fail_deferred(Connection& connection, const Result& result) {
  if (state_of(result.get()) != "42501") connection.fail(result.get(), "the commit");
  const char* const said = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
  throw UsageError{"a deferred trigger failed: " + std::string{said != nullptr ? said : ""}};
}

void add_check_of_events(Connection::Pipeline& pipeline, std::optional<std::int64_t> last) {
  pipeline.add(sql::refuse_foreign_events{.last = last});
}

void fail_if_foreign_events(const Result& result) {
  const char* const said = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
  if (state_of(result.get()) != "23001" || said == nullptr || said != foreign_events) return;
  throw database::ForeignEvents{
      "SQL of yours, or a trigger or a function that it calls: " + std::string{said} +
      ", or rolls back to a savepoint from before an append; all of the "
      "transaction is rolled back"};
}

}  // namespace stela::postgres
