// A connection to SQLite with its prepared statements: the only code that calls sqlite3_* to run
// SQL.
#pragma once

#include "sqlite/open_database.hpp"
#include "sqlite/owner.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stela::sqlite {

/// One run of a prepared statement; resets it when it goes. Parameters count from 1, columns from
/// 0. Text and blobs that are bound must outlive the run; those that are read are valid until the
/// next step.
class STELA_EVENTSTORE_EXPORT Query {
 public:
  Query(sqlite3* database, sqlite3_stmt* statement) noexcept
      : database_{database}, statement_{statement} {}
  /// A run of `statement`, one of those that the .sql files name, with its parameters bound.
  template <class Named>
  Query(sqlite3* database, sqlite3_stmt* prepared, const Named& statement)
      : Query{database, prepared} {
    statement.bind(*this);
  }
  ~Query() { sqlite3_reset(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& bind(int parameter, std::int64_t value);
  Query& bind(int parameter, std::string_view text);
  Query& bind(int parameter, std::nullptr_t);
  Query& bind_blob(int parameter, std::string_view bytes);
  Query& bind_bool(int parameter, bool value) { return bind(parameter, std::int64_t{value}); }
  Query& bind_time(int parameter, Timestamp time) {
    return bind(parameter, std::int64_t{time.time_since_epoch().count()});
  }
  /// NULL if it is empty.
  Query& bind_optional(int parameter, std::string_view text);

  /// True if there is a row.
  bool step();
  /// Runs to the end.
  void run();

  std::int64_t integer(int column) const noexcept {
    return sqlite3_column_int64(statement_, column);
  }
  bool boolean(int column) const noexcept { return integer(column) != 0; }
  Timestamp time(int column) const noexcept {
    return Timestamp{std::chrono::microseconds{integer(column)}};
  }
  /// Empty for NULL. std::bad_alloc if SQLite has no memory to hand it out.
  std::string_view text(int column) const;
  std::string_view blob(int column) const;
  bool is_null(int column) const noexcept {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  int columns() const noexcept { return sqlite3_column_count(statement_); }
  sqlite3_stmt* statement() const noexcept { return statement_; }

 private:
  void check(int code) const;
  /// Of a column that has no bytes: std::bad_alloc if there was no memory for them.
  void check_memory() const;

  sqlite3* database_;
  sqlite3_stmt* statement_;
};

/// The value of a parameter that is NULL where there is no text.
inline std::optional<std::string_view> or_null(std::string_view text) noexcept {
  return text.empty() ? std::nullopt : std::optional{text};
}

struct ConnectionOptions {
  int flags = SQLITE_OPEN_READWRITE;
  std::chrono::milliseconds busy_timeout{5000};
  /// The name of a registered SQLite VFS; empty for the platform's.
  std::string vfs = {};
  /// Nobody writes to the file as long as it is open, so that it needs no log beside it.
  /// StoreFailed if it has one, or gets one later.
  bool immutable = false;
};

/// In a forked child everything that would use it ends in UsageError.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Connection {
 public:
  /// UsageError in a forked child, while it has a copy of a connection of its parent's to the file.
  Connection(const std::string& path, const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs one of the statements that the .sql files name, prepared once per connection, to its end.
  /// How many rows it changed, if it is one that changes rows.
  template <class Named>
  std::int64_t run(const Named& statement) {
    Query{handle(), prepared(Named::sql), statement}.run();
    return sqlite3_changes(handle());
  }
  /// The same, with its rows: `while (rows.step()) use(rows.sequence());`
  template <class Named>
  typename Named::Row rows(const Named& statement) {
    return typename Named::Row{handle(), prepared(Named::sql), statement};
  }

  /// A run of `sql`, prepared once per connection. `sql` must be a constant of the program: its
  /// address stands for it.
  Query query(std::string_view sql) { return Query{handle(), prepared(sql)}; }

  /// Runs statements that aren't worth keeping.
  void execute(const std::string& sql);
  /// The first column of the first row, or nothing.
  std::optional<std::int64_t> integer(const std::string& sql);

  /// A forked child is in none: that of its parent isn't its own to end.
  bool in_transaction() const noexcept {
    return owner_.is_this() && sqlite3_get_autocommit(database_.get()) == 0;
  }
  /// Ends the transaction, if it is in one, with a statement that was prepared before: memory may
  /// have run out. Only if that has to be prepared again can it fail, and `in_transaction` tells.
  void roll_back() noexcept;
  /// True while the open transaction breaks a foreign key that is checked when it ends: it couldn't
  /// be committed.
  bool breaks_deferred_key() const noexcept;
  sqlite3* handle() const noexcept { return database_.get(); }
  /// From whoever was lent the handle: what SQL can set on it that stops the store, or what guards
  /// it, is as it was.
  void take_back() noexcept;

  /// Takes the log to the disk as it is, without waiting for whoever writes. StoreFailed if the
  /// disk fails.
  void sync_log();

  /// After a page was read: StoreFailed if somebody has written to a file that nobody was to write
  /// to. What was read may be half old and half new then.
  void check_immutable() const;

  /// The file that is open is no longer at its path.
  bool has_moved() const noexcept;

  /// Changes whenever the connection commits or sees that another one has.
  unsigned data_version() const noexcept;

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  /// What changes when somebody writes to a database: of the file, and of its log.
  struct Trace {
    std::int64_t changed_at;
    std::int64_t size;
    std::int64_t log_size;
    friend bool operator==(const Trace&, const Trace&) = default;
  };

  Statement prepare(std::string_view sql, unsigned flags);
  /// The statement that is kept for the constant `sql`.
  sqlite3_stmt* prepared(std::string_view sql);
  Trace trace() const noexcept;
  [[noreturn]] void refuse_changed() const;
  const OwningProcess owner_;
  const int busy_timeout_ms_;
  std::optional<OpenDatabase> open_;
  std::unique_ptr<sqlite3, Close> database_;
  Statement roll_back_;
  std::unordered_map<const char*, Statement> statements_;
  /// Of a file that nobody writes to, when it was opened.
  std::optional<Trace> immutable_;
};

}  // namespace stela::sqlite
