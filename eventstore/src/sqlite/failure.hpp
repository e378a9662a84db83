// SQLite's result codes as Stela's errors.
#pragma once

#include <stela/eventstore/export.hpp>

#include <sqlite3.h>

#include <string_view>

namespace stela::sqlite {

/// Throws the error that `code` stands for. `doing` says what failed: "appending", "opening".
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail(sqlite3* database, int code, std::string_view doing);

/// True if nothing is known of the transaction's outcome after such a COMMIT: it may have been
/// written whole before it failed, when the sync did, or the index of the log couldn't grow.
/// Whoever opens the database next then finds it, unless another commit has overwritten it.
bool leaves_commit_in_doubt(sqlite3* database, int code) noexcept;

}  // namespace stela::sqlite
