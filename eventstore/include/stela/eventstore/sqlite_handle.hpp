// Opt-in: the SQLite connection under an open transaction, for the caller's own SQL.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

struct sqlite3;

namespace stela::sqlite {

/// The connection that `transaction` is open on. What is done through it commits or rolls back with
/// the events. Don't begin, commit or roll back through it, don't write to Stela's tables, set no
/// commit or rollback hook, name no savepoint `stela_savepoint`, and don't keep it. Work that ends
/// the transaction, be it by COMMIT or by INSERT OR ROLLBACK, is rolled back and fails with
/// UsageError, and SQLite refuses what it writes after that. A statement of yours that is still
/// running when the work ends fails it with UsageError, and is reset. So does a temporary table,
/// view or trigger that stands in the way of a table of the database: drop it before you append and
/// before the work ends, or use a name that no table has, nor will have (stela_, outbox_, inbox_
/// and projection_ begin Stela's).
///
/// What a PRAGMA sets that would stop the store or switch off what guards it ends with the work:
/// busy_timeout, foreign_keys, ignore_check_constraints, locking_mode, query_only,
/// recursive_triggers, synchronous, wal_autocheckpoint, writable_schema. So do a progress handler
/// and an authorizer, or with the next call of Stela's in it. Any other setting (cache_size,
/// case_sensitive_like, journal_size_limit, max_page_count, a limit by sqlite3_limit, …) stays
/// until you set it back or the store is closed. Never set application_id, which says that the file
/// is Stela's; user_version is yours.
///
/// UsageError if the transaction isn't one of an SQLite store.
STELA_EVENTSTORE_EXPORT sqlite3* handle(Transaction& transaction);

}  // namespace stela::sqlite
