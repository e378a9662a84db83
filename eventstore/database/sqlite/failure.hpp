// SQLite's result codes as Stela's errors.
#pragma once

#include <stela/eventstore/export.hpp>

#include <sqlite3.h>

#include <string_view>

namespace stela::sqlite {

/// Throws the error for `code`. `doing` says what failed: "appending", "opening".
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail(sqlite3* database, int code, std::string_view doing);

/// The advice about a damaged file. It is 'export --skip-damaged' only if a store can open the file
/// and name its events: the schema, the ledger, the facts, the streams and the kinds are readable.
STELA_EVENTSTORE_EXPORT std::string_view advice_on_damage(sqlite3* database) noexcept;
/// The message of `fail` about a damaged file, without the advice.
std::string_view without_advice(std::string_view error) noexcept;

/// True for failures of the disk or a lock, which the statement didn't cause.
STELA_EVENTSTORE_EXPORT bool is_store_failure(int code) noexcept;

/// Records, for failure watches, a full or failing disk that a handler's own SQL met on a lent
/// connection. Call it before anything else runs on that connection.
void note_last_error(sqlite3* database) noexcept;

/// True if this error of a COMMIT leaves the transaction's outcome open: it may have been fully
/// written before the sync failed, or before the log's index couldn't grow. The next opening of the
/// database then finds it, unless another commit has overwritten it.
bool leaves_commit_in_doubt(sqlite3* database, int code) noexcept;

}  // namespace stela::sqlite
