#include "sqlite/core.hpp"

#include "sqlite/commit_watch.hpp"
#include "sqlite/event_import.hpp"
#include "sqlite/event_reader.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/one_state.hpp"
#include "sqlite/presence.hpp"
#include "sqlite_sql.hpp"

#include <stela/eventstore/detail/sqlite_settings.hpp>
#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

namespace stela::sqlite {
namespace {

namespace fs = std::filesystem;

/// The longest that SQLite can wait, 24 days.
constexpr std::chrono::milliseconds longest_timeout{std::numeric_limits<int>::max()};

Options checked(Options options) {
  check_ranges(settings(), options);
  if (options.log == nullptr || options.metrics == nullptr || options.clock == nullptr) {
    throw UsageError{"log, metrics and clock can't be null; leave them out for the defaults"};
  }
  options.busy_timeout = std::min(options.busy_timeout, longest_timeout);
  return options;
}

/// The size of a file; 0 if there is none.
std::uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

/// SQLite drops a log beside an empty file, including all its commits.
void check_log_has_a_database(const std::string& path) {
  // The log first: a database that is being created is never empty once it has one.
  std::error_code ignored;
  const std::string real = fs::weakly_canonical(path, ignored).string();
  if (size_of(real + "-wal") == 0 || size_of(real) > 0) return;
  throw StoreFailed{"'" + path + "' is missing or empty, but its log '" + real +
                    "-wal' isn't, and may hold committed events; put the database back beside it, "
                    "or, to begin a new one, move the log away"};
}

/// A process that opens a file by another name has another log and another lock.
void check_has_one_name(const std::string& path) {
  std::error_code error;
  const std::uintmax_t names = fs::hard_link_count(path, error);
  if (error || names <= 1) return;
  throw StoreFailed{
      "'" + path + "' has " + std::to_string(names) +
      " names (hard links), and a process that opens it by another one would overwrite "
      "committed events; remove the other names, or open a copy"};
}

/// Unset if the system can't tell.
std::optional<std::uint64_t> mount_of(const fs::path& path) {
  struct statx found {};
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &found) != 0) return {};
  if ((found.stx_mask & STATX_MNT_ID) == 0) return {};
  return found.stx_mnt_id;
}

/// A file that is mounted alone has its log and its lock in another folder than the original file.
void check_is_no_mount(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  // A missing file, or one that is being created, isn't mounted.
  const auto of_file = error ? std::nullopt : mount_of(real);
  if (!of_file || of_file == mount_of(real.parent_path()).value_or(*of_file)) return;
  throw StoreFailed{
      "'" + path +
      "' is mounted alone, and its log and its lock aren't: a process that opens the file "
      "at its origin would overwrite committed events; mount the folder that "
      "contains it"};
}

void check_writable(const Connection& connection, const std::string& path) {
  if (sqlite3_db_readonly(connection.handle(), "main") != 1) return;
  throw StoreFailed{"'" + path +
                    "' is read-only; give this user write permission to it and its folder"};
}

std::unique_ptr<Connection> open_to_write(const std::string& path, const Options& options,
                                          ConnectionOptions of_first) {
  of_first.flags |= SQLITE_OPEN_CREATE;
  auto connection = std::make_unique<Connection>(path, of_first);
  check_writable(*connection, path);
  // Before any file is put beside a foreign database.
  recognise(*connection, path, options);
  // The file itself can say that it is read-only.
  check_writable(*connection, path);
  return connection;
}

/// With its log, if there is one, as a writer would; otherwise the file alone, so that no file need
/// be put beside it. Sets `immutable` accordingly.
std::unique_ptr<Connection> open_to_read(const std::string& path, ConnectionOptions& options) {
  std::error_code ignored;
  const std::string real = fs::weakly_canonical(path, ignored).string();
  const bool has_log = size_of(real + "-wal") > 0;
  options.immutable = !has_log && !fs::exists(real + "-shm", ignored);
  try {
    auto connection = std::make_unique<Connection>(path, options);
    connection->integer("SELECT count(*) FROM sqlite_schema");
    return connection;
  } catch (const StoreFailed&) {
    if (has_log || options.immutable) throw;
  }
  options.immutable = true;
  return std::make_unique<Connection>(path, options);
}

struct Length {
  std::uintmax_t actual;
  std::uintmax_t expected;
};

Length length_of(Connection& connection, const std::string& path) {
  const std::uintmax_t actual = size_of(path);
  // Missing pages may be in the log.
  if (size_of(path + "-wal") > 0) return {actual, actual};
  return {actual, static_cast<std::uintmax_t>(connection.integer("PRAGMA page_count").value_or(0) *
                                              connection.integer("PRAGMA page_size").value_or(0))};
}

/// SQLite reads zeros in place of a file's lost end: events would be missing, and their sequences
/// assigned again.
void check_length(Connection& connection, const std::string& path) {
  const Length length = length_of(connection, path);
  if (length.actual == length.expected) return;
  throw StoreFailed{"'" + path + "' has " + std::to_string(length.actual) +
                    " bytes and should have " + std::to_string(length.expected) +
                    ": it is damaged; keep a copy, and restore a backup"};
}

bool has_log(Connection& connection) {
  return connection.integer("SELECT journal_mode = 'wal' FROM pragma_journal_mode").value_or(0) ==
         1;
}

void use_log(Connection& connection, const std::string& path) {
  connection.execute("PRAGMA journal_mode = WAL");
  if (has_log(connection)) return;
  throw StoreFailed{"'" + path + "' can't have a write-ahead log; is it on a network file system?"};
}

/// The last sequence in the blocks of kinds, at most a block beyond the events.
std::int64_t last_sequence_of_blocks(Connection& connection) {
  const std::int64_t block = connection.integer("SELECT max(block) FROM kind_blocks").value_or(-1);
  return (block + 1) * block_size - 1;
}

StoreIdentity identity_of(const std::string& path, const Facts& facts) {
  const std::string in_memory = "the database in memory " + facts.store_id.to_string();
  return {facts.store_id, path.empty() ? in_memory : "'" + path + "'"};
}

/// Frees the space of a log that a long reader made grow, when the log starts over.
void limit_log(Connection& connection, int checkpoint_pages) {
  constexpr std::int64_t bytes_a_page = 4096;
  connection.execute("PRAGMA journal_size_limit = " +
                     std::to_string(4 * bytes_a_page * checkpoint_pages));
}

}  // namespace

void check_name(const std::string& path) {
  if (path.empty()) throw UsageError{"the path of the database is empty"};
  if (path.find('\0') != std::string::npos) throw UsageError{"the path has a zero byte in it"};
  if (path == ":memory:") {
    throw UsageError{"for a database in memory use open_in_memory; a file is './:memory:'"};
  }
  // The path may hold a password, so the error doesn't repeat it.
  if (path.starts_with("postgresql://") || path.starts_with("postgres://")) {
    throw UsageError{
        "this is the URL of a server, and no file of SQLite's; stela::open and postgres::open take "
        "it"};
  }
  if (path.starts_with("file:")) {
    throw UsageError{"'" + path + "' is a URI; name the file by its path, and choose by the " +
                     "options what a URI would (a file of this name is './" + path + "')"};
  }
}

void check_path(const std::string& path, const Options& options) {
  check_name(path);
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw StoreFailed{"'" + path + "' is a folder; name a file in it"};
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw StoreFailed{"'" + path + "' is a device, a pipe or a socket; name a file"};
  }
  if (!fs::exists(status)) {
    if (!options.create || options.read_only)
      throw StoreFailed{"there is no database '" + path + "'"};
    const fs::path parent = fs::path{path}.parent_path();
    if (!parent.empty() && !fs::is_directory(parent, ignored)) {
      throw StoreFailed{"'" + path + "' can't be made: there is no folder '" + parent.string() +
                        "'; make it first"};
    }
  }
  check_has_one_name(path);
  check_is_no_mount(path);
  check_log_has_a_database(path);
}

Core::Core(std::string path, const Options& options)
    : path_{std::move(path)},
      options_{checked(options)},
      connection_options_{.flags = options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE,
                          .busy_timeout = options_.busy_timeout,
                          .vfs = options.vfs} {
  auto connection = open_connection();
  place_.emplace(path_, *connection);
  auto lock = std::make_unique<WriteLock>(options_.read_only ? std::string{} : path_);
  prepare(*connection, *lock);
  conventions_ = {facts_.codec,
                  options.publishes,
                  options.log,
                  options.metrics,
                  std::make_shared<StoreIdentity>(identity_of(path_, facts_)),
                  options_.clock,
                  options_.keys};
  if (!path_.empty()) readers_ = std::make_unique<Readers>(path_, connection_options_, *place_);
  writer_ = std::make_unique<Writer>(std::move(connection), std::move(lock), kinds_,
                                     Writer::Settings{.durability = facts_.durability,
                                                      .busy_timeout = options_.busy_timeout,
                                                      .checkpoint_pages = options.checkpoint_pages,
                                                      .read_only = options.read_only,
                                                      .clock = options.clock,
                                                      .random = options.random,
                                                      .conventions = &conventions_,
                                                      .place = &*place_});
  reading_ = readers_ ? static_cast<Reading*>(readers_.get()) : writer_.get();
  writer_->know_schema("eventstore", sql::migrations.size());
}

std::unique_ptr<Connection> Core::open_connection() {
  if (path_.empty()) {
    ConnectionOptions in_memory = connection_options_;
    in_memory.flags |= SQLITE_OPEN_MEMORY;
    return std::make_unique<Connection>(":memory:", in_memory);
  }
  auto connection = options_.read_only ? open_to_read(path_, connection_options_)
                                       : open_to_write(path_, options_, connection_options_);
  // Absolute and without links: the place where SQLite keeps the log, whichever path or folder the
  // file is opened by.
  path_ = sqlite3_db_filename(connection->handle(), "main");
  return connection;
}

void Core::prepare(Connection& connection, WriteLock& lock) {
  std::optional<WriteLockGuard> guard;
  if (!is_ready(connection)) {
    guard.emplace(lock, options_.busy_timeout);
    check_place();
    make_ready(connection);
  }
  if (!path_.empty() && !options_.read_only) limit_log(connection, options_.checkpoint_pages);
  facts_ = settle_facts(connection, options_);
  connection.check_immutable();
}

bool Core::is_ready(Connection& connection) const {
  if (path_.empty() || options_.read_only || !has_log(connection)) return false;
  // A concurrent writer makes them differ too; under the lock there is none.
  const Length length = length_of(connection, path_);
  return length.actual == length.expected &&
         is_migrated(connection, "eventstore", sql::migrations) && find_facts(connection);
}

void Core::make_ready(Connection& connection) {
  recognise(connection, path_, options_);
  if (!path_.empty()) check_length(connection, path_);
  if (options_.read_only) {
    check_migrated(connection, "eventstore", sql::migrations);
  } else {
    if (!path_.empty()) use_log(connection, path_);
    if (!options_.migrate) refuse_older(connection, "eventstore", sql::migrations);
    sqlite::migrate(connection, "eventstore", sql::migrations, now());
  }
}

Core::~Core() {
  // Destroy the readers first, so that the writer can move the entire log into the database.
  readers_.reset();
}

void Core::migrate(std::string_view module, std::span<const database::Migration> migrations,
                   std::span<const database::Migration>) {
  if (options_.read_only) {
    return reading().read(
        [&](Connection& connection) { check_migrated(connection, module, migrations); });
  }
  bool is_done = false;
  reading().read(
      [&](Connection& connection) { is_done = is_migrated(connection, module, migrations); });
  if (!is_done) {
    writer_->run_alone([&](Connection& connection) {
      if (!options_.migrate) refuse_older(connection, module, migrations);
      sqlite::migrate(connection, module, migrations, now());
    });
  }
  writer_->know_schema(module, migrations.size());
}

Timestamp Core::now(database::Connection& connection) const {
  const bool is_written =
      writer_ != nullptr && &connection == &writer_->connection() && connection.in_transaction();
  return is_written ? writer_->now() : Database::now(connection);
}

void Core::sync() {
  if (!readers_) return;
  readers_->read([&](Connection& connection) {
    try {
      connection.sync_log();
    } catch (const StoreFailed& e) {
      // The system reports the error only once, and success afterwards.
      writer_->give_up(e.what());
      throw;
    }
  });
}

std::unique_ptr<Connection> Core::connect() const {
  owner_.check();
  if (path_.empty()) throw UsageError{"a database in memory has one connection only"};
  auto connection = std::make_unique<Connection>(path_, connection_options_);
  check_place();
  return connection;
}

void Core::read_snapshot(Work work) {
  reading().read([&](Connection& connection) {
    const OneState state{connection};
    work(connection);
  });
}

std::unique_ptr<stela::EventImport> Core::make_import() {
  return std::make_unique<EventImport>(kinds_);
}

std::int64_t Core::last_known_sequence() {
  std::int64_t last = -1;
  const auto look = [&](std::int64_t (*find)(Connection&)) {
    try {
      reading().read([&](Connection& connection) { last = std::max(last, find(connection)); });
    } catch (const Error& e) {
      if (e.is_retryable()) throw;
    }
  };
  look(sqlite::last_sequence);
  look(last_indexed_sequence);
  if (last < 0) look(last_sequence_of_blocks);
  return last;
}

std::unique_ptr<database::EventReader> Core::make_event_reader() {
  return std::make_unique<EventReader>(kinds_);
}

std::unique_ptr<database::CommitWatch> Core::watch_commits() {
  return std::make_unique<CommitWatch>(*this);
}

std::unique_ptr<database::Presence> Core::appear() {
  return std::make_unique<Presence>(path_);
}

std::optional<bool> Core::is_present(std::int64_t number) const noexcept {
  return Presence::lives(path_, number);
}

void Core::tidy(FunctionRef<void()> work) {
  writer_->tidy([&](Connection&) { work(); });
}

Core& core_of(const Store& store) {
  auto* const core = dynamic_cast<Core*>(&store.database());
  if (core == nullptr) throw UsageError{"this store isn't on SQLite"};
  return *core;
}

Driver& driver_of(database::Database& database) {
  auto* const driver = dynamic_cast<Driver*>(&database);
  if (driver == nullptr) throw UsageError{"this database isn't SQLite's"};
  return *driver;
}

}  // namespace stela::sqlite
