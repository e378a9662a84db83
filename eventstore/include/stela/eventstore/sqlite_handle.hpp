// Optional: the SQLite connection of an open transaction, for the caller's own SQL.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

struct sqlite3;

namespace stela::sqlite {

/// The connection of `transaction`, for an access layer of your own. For SQL alone use `Sql`, which
/// refuses whatever these rules forbid. Work done through it commits or rolls back with the events.
/// Rules:
/// - Statements only: don't begin, commit or roll back, not even by OR ROLLBACK. A full or failing
///   disk also ends the transaction: each later statement commits by itself.
/// - Don't write to Stela's tables, and hide none behind a temporary table, view or trigger.
/// - Name no savepoint `stela_savepoint`, and don't roll back to one from before an append.
/// - Reset your statements and close your blobs before the work ends: an open one blocks every
///   later write. Don't keep the connection.
/// - Leave settings as they were. The commit and rollback hooks are Stela's until the work ends.
///   application_id marks the file as Stela's; user_version is yours.
///
/// Stela checks that the transaction is still the one that it began: before each append and each
/// `transact` on it, and at the end. If the work ended it by a commit, earlier changes may be
/// committed: the work fails with UsageError, even if it throws another exception, and its
/// aggregates can't be used. If the handler of a reaction or a consumer did so, it isn't retried
/// automatically: the reaction stops or parks the event, and the consumer parks the message. If it
/// was rolled back, the work fails with UsageError, and a failed handler is retried.
///
/// UsageError if the transaction isn't one of an SQLite store.
STELA_EVENTSTORE_EXPORT sqlite3* handle(Transaction& transaction);

}  // namespace stela::sqlite
