// SQLite's result codes as Stela's errors.
#pragma once

#include <stela/eventstore/export.hpp>

#include <sqlite3.h>

#include <string_view>

namespace stela::sqlite {

/// Throws the error that `code` stands for. `doing` says what failed: "appending", "opening".
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail(sqlite3* database, int code, std::string_view doing);

/// What to do about a damaged file. 'export --skip-damaged' only if a store of it can be opened,
/// and events can be named: the schema, the ledger, the facts, the streams and the kinds can be
/// read.
STELA_EVENTSTORE_EXPORT std::string_view advice_on_damage(sqlite3* database) noexcept;
/// What `fail` says of a damaged file, without the advice.
std::string_view without_advice(std::string_view error) noexcept;

/// True for failures that the statement isn't to blame for: the disk's, or a lock's.
STELA_EVENTSTORE_EXPORT bool is_store_failure(int code) noexcept;

/// Tells who watches of a full disk, or one that fails, that SQL of a handler's own has met on a
/// lent connection; before anything else runs on that.
void note_last_error(sqlite3* database) noexcept;

/// True if nothing is known of the transaction's outcome after such a COMMIT: it may have been
/// written whole before it failed, when the sync did, or the index of the log couldn't grow.
/// Whoever opens the database next then finds it, unless another commit has overwritten it.
bool leaves_commit_in_doubt(sqlite3* database, int code) noexcept;

}  // namespace stela::sqlite
