// A statement of somebody else's on a connection of Stela's.
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

/// Where tables are found, and what the triggers on Stela's tables and those of read models let be
/// written: nothing if `guard` is "on", and if it names a schema, only what is in that one.
struct UserSettings {
  std::string path;
  std::string guard;
};

/// In the open transaction, until it ends or they are set again.
STELA_EVENTSTORE_EXPORT void set(Connection& connection, const UserSettings& settings);
/// As Stela's own statements need them.
STELA_EVENTSTORE_EXPORT UserSettings own_settings(const Connection& connection);
/// Where the user's tables are found, and Stela's after them.
STELA_EVENTSTORE_EXPORT std::string users_path(const Connection& connection);

struct UserStatement {
  /// What the user wrote.
  std::string_view sql;
  /// What the server gets, with $1 for ?1.
  std::string text;
  std::span<const SqlValue> values = {};
  /// The search_path that is set, for a statement that is prepared if it comes again; else empty.
  std::string_view scope = {};
  /// Who runs it, for messages; may be empty.
  std::string_view who = {};

  /// "projector 'totals': \"SELECT 1\"".
  std::string say() const;
  /// UsageError: the statement, and `why`.
  [[noreturn]] STELA_EVENTSTORE_EXPORT void refuse(std::string_view why) const;
};

/// Runs it. How many rows it changed; fills `rows` unless it is null. UsageError if it is wrong,
/// UniquenessViolated or ConstraintViolated if a constraint refuses a row; and what a connection
/// fails with. Then the server refuses the rest of the transaction.
STELA_EVENTSTORE_EXPORT std::int64_t run(Connection& connection, const UserStatement& statement,
                                         Rows* rows);
/// The same between savepoints: if it fails, the transaction continues. Under `settings` unless
/// that is null, and under Stela's own afterwards.
STELA_EVENTSTORE_EXPORT std::int64_t run_between_savepoints(Connection& connection,
                                                            const UserStatement& statement,
                                                            const UserSettings* settings,
                                                            Rows* rows);

/// Before a COMMIT: checks what is deferred until then, and runs its triggers, under `settings`,
/// which must outlive the run. How many statements that takes.
STELA_EVENTSTORE_EXPORT std::size_t add_deferred(Connection::Pipeline& pipeline,
                                                 const UserSettings& settings);
/// Throws what `result` means, an error of one of them: UsageError if a trigger writes what is
/// Stela's.
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail_deferred(Connection& connection,
                                                        const Result& result);

/// Before a COMMIT, after what is deferred: fails if SQL of the user's added events. `last` is the
/// sequence of the last event, of whoever has the order lock; else the transaction has appended
/// nothing.
STELA_EVENTSTORE_EXPORT void add_check_of_events(Connection::Pipeline& pipeline,
                                                 std::optional<std::int64_t> last);
/// ForeignEvents if that is what `result`, an error, means.
STELA_EVENTSTORE_EXPORT void fail_if_foreign_events(const Result& result);

}  // namespace stela::postgres
