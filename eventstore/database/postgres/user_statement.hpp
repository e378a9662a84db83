// Runs foreign statements on Stela's connections.
#pragma once

#include "database/postgres/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {

/// Where tables are found, and which writes the triggers on Stela's and read models' tables allow:
/// none if `guard` is "on"; if it names a schema, only writes within that one.
struct UserSettings {
  std::string path;
  std::string guard;
};

/// Sets them in the open transaction, until it ends or they are set again.
STELA_EVENTSTORE_EXPORT void set(Connection& connection, const UserSettings& settings);
/// The settings that Stela's own statements need.
STELA_EVENTSTORE_EXPORT UserSettings own_settings(const Connection& connection);
/// The search_path with the user's tables first, and Stela's after them.
STELA_EVENTSTORE_EXPORT std::string users_path(const Connection& connection);

struct UserStatement {
  /// The text as the user wrote it.
  std::string_view sql;
  /// The text for the server, with $1 for ?1.
  std::string text;
  std::span<const SqlValue> values = {};
  /// The search_path, if the statement is prepared from its second run on; otherwise empty.
  std::string_view scope = {};
  /// The runner's name for messages; may be empty.
  std::string_view who = {};

  /// "projector 'totals': \"SELECT 1\"".
  std::string say() const;
  /// UsageError with the statement and `why`.
  [[noreturn]] STELA_EVENTSTORE_EXPORT void refuse(std::string_view why) const;
};

/// Runs the statement. Returns how many rows it changed, and fills `rows` unless it is null.
/// UsageError if the statement is wrong; UniquenessViolated or ConstraintViolated if a constraint
/// refuses a row; otherwise the connection's error. After an error the server refuses the rest of
/// the transaction.
STELA_EVENTSTORE_EXPORT std::int64_t run(Connection& connection, const UserStatement& statement,
                                         Rows* rows);
/// The same between savepoints: if it fails, the transaction continues. Runs under `settings`
/// unless that is null, and restores Stela's own afterwards.
STELA_EVENTSTORE_EXPORT std::int64_t run_between_savepoints(Connection& connection,
                                                            const UserStatement& statement,
                                                            const UserSettings* settings,
                                                            Rows* rows);

/// Before a COMMIT: checks deferred constraints and runs deferred triggers under `settings`, which
/// must outlive the run. Returns the number of added statements.
STELA_EVENTSTORE_EXPORT std::size_t add_deferred(Connection::Pipeline& pipeline,
                                                 const UserSettings& settings);
/// Throws the exception for `result`, an error of one of them: UsageError if a trigger writes to
/// Stela's tables.
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail_deferred(Connection& connection,
                                                        const Result& result);

/// Before a COMMIT, after the deferred checks: fails if the user's SQL added events. `last` is the
/// sequence of the last event if this transaction holds the order lock; otherwise it has appended
/// nothing.
STELA_EVENTSTORE_EXPORT void add_check_of_events(Connection::Pipeline& pipeline,
                                                 std::optional<std::int64_t> last);
/// Throws ForeignEvents if the error in `result` means that.
STELA_EVENTSTORE_EXPORT void fail_if_foreign_events(const Result& result);

}  // namespace stela::postgres
