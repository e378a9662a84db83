// Optional: the PostgreSQL connection of an open transaction, for the caller's own SQL.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

struct pg_conn;

namespace stela::postgres {

/// The connection of `transaction`, libpq's `PGconn*`, for an access layer of your own; for SQL
/// alone `Sql` is the way, which refuses what these rules forbid. What you do through it commits or
/// rolls back with the events. From this call on nobody else appends until the transaction ends.
/// Rules:
/// - Statements only: don't begin, commit or roll back, and don't keep the connection.
/// - Don't write to Stela's tables. Its search_path finds those alone: name your tables with their
///   schema (`Options::sql_schema`), or set the search_path back when you are done.
/// - A statement that fails makes the server refuse the rest of the transaction. What may fail goes
///   between savepoints of yours, but none named `stela_savepoint` or `stela_sql`. Don't roll back
///   to one from before an append.
/// - Leave the settings of the session, its prepared statements and its pipeline mode as they were,
///   and take all results.
///
/// Stela looks whether the transaction is still the one that it began: before and after each append
/// and each `transact` on it, and at the end. If the work ended it by a commit, what it did before
/// may be committed: the work fails with UsageError, also if it throws something else, its
/// aggregates can't be used, and the connection is closed. If the handler of a reaction or a
/// consumer did so, it isn't called again by itself: the reaction stops or parks the event, and the
/// consumer parks the message. If it was rolled back, a handler that failed is tried again.
///
/// UsageError if the transaction isn't one of a PostgreSQL store.
STELA_EVENTSTORE_EXPORT pg_conn* handle(Transaction& transaction);

}  // namespace stela::postgres
