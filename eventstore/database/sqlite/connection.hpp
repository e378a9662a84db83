// A connection to SQLite with its prepared statements.
#pragma once

#include "database/connection.hpp"
#include "database/owner.hpp"
#include "database/sqlite/open_database.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>

#include <sqlite3.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace stela::sqlite {

using database::or_null;

/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT PreparedStatement final : public database::Statement {
 public:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  using Owner = std::unique_ptr<sqlite3_stmt, Finalize>;

  PreparedStatement(sqlite3* database, Owner statement) noexcept
      : database_{database}, statement_{std::move(statement)} {}

  sqlite3_stmt* get() const noexcept { return statement_.get(); }
  /// Leaks the statement.
  void abandon() noexcept { (void)statement_.release(); }

  void bind(int parameter, std::int64_t value) override;
  void bind(int parameter, std::string_view text) override;
  void bind(int parameter, std::nullptr_t) override;
  void bind_blob(int parameter, std::string_view bytes) override;
  bool step() override;
  void reset() noexcept override { sqlite3_reset(get()); }
  std::int64_t changes() const noexcept override { return sqlite3_changes64(database_); }
  std::int64_t integer(int column) const noexcept override {
    return sqlite3_column_int64(get(), column);
  }
  std::string_view text(int column) const override;
  std::string_view blob(int column) const override;
  bool is_null(int column) const noexcept override {
    return sqlite3_column_type(get(), column) == SQLITE_NULL;
  }

 private:
  void check(int code) const;
  /// Called for a column without bytes: std::bad_alloc if there was no memory for them.
  void check_memory() const;

  sqlite3* database_;
  Owner statement_;
};

/// A run of an SQLite statement.
using Query = database::Run<PreparedStatement>;

struct ConnectionOptions {
  int flags = SQLITE_OPEN_READWRITE;
  std::chrono::milliseconds busy_timeout{5000};
  /// The name of a registered SQLite VFS; empty for the platform's.
  std::string vfs = {};
  /// Nobody writes to the file while it is open, so it needs no log. StoreFailed if it has a log,
  /// or gets one later.
  bool immutable = false;
};

/// In a forked child every use is a UsageError.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Connection final : public database::Connection {
 public:
  /// UsageError in a forked child that holds a copy of its parent's connection to the file.
  Connection(const std::string& path, const ConnectionOptions& options);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs a named statement of the .sql files to its end, prepared once per connection. Returns how
  /// many rows it changed, if it changes rows.
  template <class Named>
  std::int64_t run(const Named& statement) {
    Query query{kept(Named::sql), statement};
    query.run();
    return query.changes();
  }
  /// The same, returning its rows: `while (rows.step()) use(rows.sequence());`
  template <class Named>
  typename Named::Row rows(const Named& statement) {
    return typename Named::Row{kept(Named::sql), statement};
  }

  /// A run of `sql`, prepared once per connection. `sql` must be a constant of the program: its
  /// address identifies it.
  Query query(std::string_view sql) { return Query{kept(sql)}; }

  /// Runs statements that aren't kept.
  void execute(const std::string& sql) override;
  /// The first column of the first row, or nothing.
  std::optional<std::int64_t> integer(const std::string& sql);

  /// A forked child is in no transaction: it may not end its parent's.
  database::DatabaseName database() const noexcept override;
  bool in_transaction() const noexcept override {
    return owner_.is_this() && sqlite3_get_autocommit(database_.get()) == 0;
  }
  /// Ends the transaction, if there is one, by a statement prepared earlier, since memory may have
  /// run out. It can fail only if that must be prepared again; `in_transaction` tells.
  void roll_back() noexcept;
  sqlite3* handle() const noexcept { return database_.get(); }

  /// Flushes the log to the disk as it is, without waiting for writers. StoreFailed if the disk
  /// fails.
  void sync_log();

  /// Called after a page was read: StoreFailed if a file that must not change was written to. The
  /// page may then be half old and half new.
  void check_immutable() const;

  /// True if the open file is no longer at its path.
  bool has_moved() const noexcept;

  /// Changes whenever this connection commits or sees another's commit.
  unsigned data_version() const noexcept;

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
  };
  /// Changes when a database is written to: attributes of the file and its log.
  struct Trace {
    std::int64_t changed_at;
    std::int64_t size;
    std::int64_t log_size;
    friend bool operator==(const Trace&, const Trace&) = default;
  };

  PreparedStatement::Owner prepare(std::string_view sql, unsigned flags);
  database::Statement& prepared(std::string_view sql, std::string_view) override {
    return kept(sql);
  }
  PreparedStatement& kept(std::string_view sql);
  Trace trace() const noexcept;
  [[noreturn]] void refuse_changed() const;
  const database::OwningProcess owner_;
  std::optional<OpenDatabase> open_;
  std::unique_ptr<sqlite3, Close> database_;
  PreparedStatement::Owner roll_back_;
  std::unordered_map<const char*, PreparedStatement> statements_;
  /// The trace at opening, for an immutable file.
  std::optional<Trace> immutable_;
};

/// Casts `connection` to an SQLite connection: for code of this engine.
inline Connection& connection_of(database::Connection& connection) noexcept {
  return static_cast<Connection&>(connection);
}

}  // namespace stela::sqlite
