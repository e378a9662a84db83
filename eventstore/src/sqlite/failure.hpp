// SQLite's result codes as Stela's errors.
#pragma once

#include <stela/eventstore/export.hpp>

#include <sqlite3.h>

#include <exception>
#include <string_view>

namespace stela::sqlite {

/// Throws the error that `code` stands for. `doing` says what failed: "appending", "opening".
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail(sqlite3* database, int code, std::string_view doing);

/// What to do about a damaged file. 'export --skip-damaged' only if a store of it can be opened:
/// the schema, the ledger and the facts can be read.
STELA_EVENTSTORE_EXPORT std::string_view advice_on_damage(sqlite3* database) noexcept;
/// What `fail` says of a damaged file, without the advice.
std::string_view without_advice(std::string_view error) noexcept;

/// True for failures that the statement isn't to blame for: the disk's, or a lock's.
STELA_EVENTSTORE_EXPORT bool is_store_failure(int code) noexcept;

/// Sees what a database fails with while a handler works on it. What the handler throws doesn't
/// tell: it may wrap the failure, or pass on the same of another store's.
/// Threads: the one that makes it.
class STELA_EVENTSTORE_EXPORT FailureWatch {
 public:
  explicit FailureWatch(sqlite3* database) noexcept;
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// For the end of a handler that threw: throws what the database failed with, if it did.
  void rethrow_failure() const;

  /// The exception that is being handled, which `database` failed with.
  static void note(sqlite3* database) noexcept;
  /// A full disk, or one that fails, that SQL of the handler's own has met on a lent connection;
  /// before anything else runs on that.
  static void note_last_error(sqlite3* database) noexcept;

 private:
  bool is_of(sqlite3* database) const noexcept;

  sqlite3* const database_;
  FailureWatch* const outer_;
  std::exception_ptr failure_;
};

/// True if nothing is known of the transaction's outcome after such a COMMIT: it may have been
/// written whole before it failed, when the sync did, or the index of the log couldn't grow.
/// Whoever opens the database next then finds it, unless another commit has overwritten it.
bool leaves_commit_in_doubt(sqlite3* database, int code) noexcept;

}  // namespace stela::sqlite
