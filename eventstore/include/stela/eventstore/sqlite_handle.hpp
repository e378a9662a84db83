// Optional: the SQLite connection of an open transaction, for the caller's own SQL.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

struct sqlite3;

namespace stela::sqlite {

/// The connection of `transaction`. What you do through it commits or rolls back with the events.
/// Rules:
/// - Don't begin, commit or roll back, and don't keep the connection.
/// - Don't write to Stela's tables.
/// - Set no commit or rollback hook, and name no savepoint `stela_savepoint`.
/// - Never set application_id: it marks the file as Stela's. user_version is yours.
///
/// If the work ends the transaction, by COMMIT or INSERT OR ROLLBACK for example, it is rolled back
/// and fails with UsageError. SQLite refuses what the work writes after that. The work also fails
/// with UsageError if one of its statements is still running when it ends; that statement is reset.
/// A temporary table, view or trigger must not hide a table of the database, or the work fails with
/// UsageError: drop it before you append and before the work ends, or use a name that no table has
/// or will have. (Stela's names begin with stela_, outbox_, inbox_ and projection_.)
///
/// Some PRAGMA settings would stop the store or switch off its safeguards. They last only until the
/// work ends: busy_timeout, foreign_keys, ignore_check_constraints, locking_mode, query_only,
/// recursive_triggers, synchronous, wal_autocheckpoint, writable_schema. A progress handler and an
/// authorizer last until then too, or until the next call of Stela in the work. Any other setting
/// (cache_size, case_sensitive_like, journal_size_limit, max_page_count, a limit by sqlite3_limit,
/// …) remains until you set it back or the store is closed.
///
/// UsageError if the transaction isn't one of an SQLite store.
STELA_EVENTSTORE_EXPORT sqlite3* handle(Transaction& transaction);

}  // namespace stela::sqlite
