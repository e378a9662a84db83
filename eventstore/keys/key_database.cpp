#include "key_database.hpp"

#include "database/sqlite/connection.hpp"
#include "key_rows.hpp"
#include "keys_sql.hpp"
#include "shredding_vfs.hpp"
#include "sqlite/place.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/write_lock.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

namespace stela::keys {
namespace {

/// "STLK". The first migration sets it.
constexpr std::int64_t key_store_id = 0x53544c4b;

/// Deleted or overwritten data disappears from the file, and no log keeps it.
constexpr const char* key_settings =
    "PRAGMA journal_mode = DELETE; PRAGMA secure_delete = ON; PRAGMA synchronous = EXTRA; "
    "PRAGMA temp_store = MEMORY";

void make_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) {
    ::close(file);
  } else if (errno != EEXIST) {
    throw StoreFailed{"making the key store '" + path + "' failed: " + std::strerror(errno)};
  }
}

void recognise_key_store(sqlite::Connection& connection, const std::string& path, bool may_make) {
  // A consistent read: another process may be creating it.
  connection.execute("BEGIN");
  const std::int64_t id = connection.integer("PRAGMA application_id").value_or(0);
  const std::int64_t tables = connection.integer("SELECT count(*) FROM sqlite_schema").value_or(0);
  connection.roll_back();
  if (id == key_store_id) return;
  const bool is_empty = id == 0 && tables == 0;
  if (is_empty && may_make) return;
  throw SchemaMismatch{"'" + path + "' " +
                       (is_empty ? "is empty: no key store has been made in it yet"
                                 : "isn't a key store, but another application's database "
                                   "(application id " +
                                       std::to_string(id) + "); it is left as it is")};
}

/// SQLite's own pauses grow so long that a reader beside a busy writer hardly ever gets in between
/// two commits.
int wait_for_lock(void* timeout, int tries) noexcept {
  constexpr std::chrono::milliseconds pause{2};
  if (tries * pause >= *static_cast<const std::chrono::milliseconds*>(timeout)) return 0;
  sqlite3_sleep(static_cast<int>(pause.count()));
  return 1;
}

/// Rolls back a killed process's unfinished transaction. That needs write access, so it happens
/// before the file is opened for reading.
void take_back_unfinished(const std::string& path) {
  std::error_code error;
  const std::string journal = std::filesystem::weakly_canonical(path, error).string() + "-journal";
  if (error || std::filesystem::file_size(journal, error) == 0 || error) return;
  if (::access(path.c_str(), W_OK) != 0) return;
  sqlite::Connection{path, {.flags = SQLITE_OPEN_READWRITE, .vfs = shredding_vfs()}}.integer(
      "PRAGMA application_id");
}

/// The path, after creating the file if necessary.
std::string prepared_file(const std::string& path, const KeyOptions& options) {
  if (path.empty() || path.front() == ':' || path.starts_with("file:")) {
    throw UsageError{"'" + path +
                     "' isn't the path of a file: a key store is in a file of its own"};
  }
  if (options.create && !options.read_only) make_file(path);
  if (options.read_only) take_back_unfinished(path);
  return path;
}

class KeyFile final : public KeyDatabase {
 public:
  KeyFile(const std::string& path, const KeyOptions& options);

  std::string beside(std::string_view end) const override { return name() + std::string{end}; }
  Connection& connection() override {
    place_->check_now_and_then();
    return connection_;
  }

 private:
  void begin(Kind kind) override {
    place_->check();
    keep_journal(kind == Kind::adds);
    connection_.execute("BEGIN IMMEDIATE");
  }
  void keep_journal(bool keeps);
  void commit() override { connection_.execute("COMMIT"); }
  void roll_back() noexcept override { connection_.roll_back(); }
  void migrate(Timestamp now);

  const std::chrono::milliseconds busy_timeout_;
  sqlite::Connection connection_;
  std::optional<sqlite::Place> place_;
  bool keeps_journal_ = false;
};

KeyFile::KeyFile(const std::string& path, const KeyOptions& options)
    : KeyDatabase{prepared_file(path, options), options.read_only},
      busy_timeout_{options.busy_timeout},
      connection_{path,
                  {.flags = options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE,
                   .busy_timeout = options.busy_timeout,
                   .vfs = options.vfs.empty() ? shredding_vfs() : options.vfs}} {
  sqlite3_busy_handler(connection_.handle(), wait_for_lock,
                       const_cast<std::chrono::milliseconds*>(&busy_timeout_));
  recognise_key_store(connection_, path, options.create && !options.read_only);
  place_.emplace(path, connection_);
  if (options.read_only) {
    sqlite::check_migrated(connection_, "keys", sql::migrations);
  } else {
    connection_.execute(key_settings);
    migrate(options.clock->now());
  }
}

/// A persistent journal halves the number of flushes. But it contains old pages, so a change that
/// deletes or overwrites a key must delete the journal, too.
void KeyFile::keep_journal(bool keeps) {
  if (keeps == keeps_journal_) return;
  connection_.execute(keeps ? "PRAGMA journal_mode = PERSIST" : "PRAGMA journal_mode = DELETE");
  keeps_journal_ = keeps;
}

void KeyFile::migrate(Timestamp now) {
  if (sqlite::is_migrated(connection_, "keys", sql::migrations)) return;
  sqlite::WriteLock lock{name()};
  const sqlite::WriteLockGuard guard{lock, busy_timeout_};
  sqlite::migrate(connection_, "keys", sql::migrations, now);
}

}  // namespace

void KeyDatabase::write(Kind kind, FunctionRef<void(Connection&)> work) {
  if (is_read_only_) {
    throw UsageError{"the key store '" + name_ + "' is open read-only, and can't be changed"};
  }
  Connection& own = connection();
  try {
    begin(kind);
    work(own);
    commit();
  } catch (...) {
    roll_back();
    throw;
  }
}

std::unique_ptr<KeyDatabase> open_database(const std::string& location, const KeyOptions& options) {
  if (is_on_server(location)) return open_on_server(location, options);
  constexpr std::string_view prefix = "sqlite:";
  return std::make_unique<KeyFile>(
      location.starts_with(prefix) ? location.substr(prefix.size()) : location, options);
}

Identity read_identity(const std::string& path) {
  take_back_unfinished(path);
  {
    sqlite::Connection file{path, {.flags = SQLITE_OPEN_READONLY, .vfs = shredding_vfs()}};
    if (file.integer("SELECT count(*) FROM sqlite_schema").value_or(0) == 0) return {};
  }
  const auto database = open_database(path, {.create = false, .read_only = true});
  auto row = database->connection().rows(sql::position{.seen = 0});
  if (!row.step()) return {};
  return {Uuid{code_of(row.id())}, std::string{row.serves().value_or("")}};
}

void set_serves(const std::string& path, const std::string& serves) {
  const auto database = open_database(path, {.create = false});
  database->write(KeyDatabase::Kind::adds, [&](Connection& connection) {
    connection.run(sql::set_serves{.serves = serves});
  });
}

#ifndef STELA_HAS_POSTGRES
std::unique_ptr<KeyDatabase> open_on_server(const std::string& conninfo, const KeyOptions&) {
  throw UsageError{postgres::describe(conninfo)};  // which says that this build has no such engine
}
#endif

}  // namespace stela::keys
