// Optional: the PostgreSQL connection of an open transaction, for the caller's own SQL.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

struct pg_conn;

namespace stela::postgres {

/// The connection of `transaction`, libpq's `PGconn*`, for an access layer of your own. For SQL
/// alone use `Sql`, which refuses whatever these rules forbid. Work done through it commits or
/// rolls back with the events. From this call on nobody else appends until the transaction ends.
/// Rules:
/// - Statements only: don't begin, commit or roll back, and don't keep the connection.
/// - Don't write to Stela's tables. Its search_path finds only those: name your tables with their
///   schema (`Options::sql_schema`), or restore the search_path when you are done.
/// - After a failed statement the server refuses the rest of the transaction. Put statements that
///   may fail between savepoints of your own, but name none `stela_savepoint` or `stela_sql`. Don't
///   roll back to a savepoint from before an append.
/// - Leave the settings of the session, its prepared statements and its pipeline mode as they were,
///   and take all results.
///
/// Stela checks that the transaction is still the one that it began: before and after each append
/// and each `transact` on it, and at the end. If the work ended it by a commit, earlier changes may
/// be committed: the work fails with UsageError, even if it throws another exception, its
/// aggregates can't be used, and the connection is closed. If the handler of a reaction or a
/// consumer did so, it isn't retried automatically: the reaction stops or parks the event, and the
/// consumer parks the message. If it was rolled back, a failed handler is retried.
///
/// UsageError if the transaction isn't one of a PostgreSQL store.
STELA_EVENTSTORE_EXPORT pg_conn* handle(Transaction& transaction);

}  // namespace stela::postgres
