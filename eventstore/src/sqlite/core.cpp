#include "sqlite/core.hpp"

#include "sqlite_sql.hpp"

#include <stela/framework/error.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace stela::sqlite {
namespace {

namespace fs = std::filesystem;

void check_options(const Options& options) {
  if (options.busy_timeout.count() < 0) throw UsageError{"busy_timeout is negative"};
  if (options.checkpoint_pages < 1) throw UsageError{"checkpoint_pages is less than 1"};
  if (options.log == nullptr || options.metrics == nullptr || options.clock == nullptr) {
    throw UsageError{"log, metrics and clock can't be null; leave them out for the defaults"};
  }
}

ConnectionOptions connection_options(const Options& options, int flags) {
  return {.flags = flags, .busy_timeout = options.busy_timeout, .vfs = options.vfs};
}

std::unique_ptr<Connection> open_file(const std::string& path, const Options& options) {
  auto connection = std::make_unique<Connection>(
      path, connection_options(options, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  if (sqlite3_db_readonly(connection->handle(), "main") == 1) {
    throw StoreFailed{"'" + path + "' is read-only; give this user write permission to it"};
  }
  return connection;
}

void use_wal(Connection& connection, const std::string& path) {
  connection.execute("PRAGMA journal_mode = WAL");
  const auto mode = connection.integer("SELECT journal_mode = 'wal' FROM pragma_journal_mode");
  if (mode.value_or(0) != 1) {
    throw StoreFailed{"'" + path +
                      "' can't have a write-ahead log; is it on a network file system?"};
  }
}

}  // namespace

void check_path(const std::string& path, const Options& options) {
  if (path.empty()) throw UsageError{"the path of the database is empty"};
  if (path.find('\0') != std::string::npos) throw UsageError{"the path has a zero byte in it"};
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw StoreFailed{"'" + path + "' is a folder; name a file in it"};
  }
  if (!fs::exists(status)) {
    if (!options.create) throw StoreFailed{"there is no database '" + path + "'"};
    const fs::path parent = fs::path{path}.parent_path();
    if (!parent.empty() && !fs::is_directory(parent, ignored)) {
      throw StoreFailed{"'" + path + "' can't be made: there is no folder '" + parent.string() +
                        "'; make it first"};
    }
  }
}

Store::Core::Core(std::string path, const Options& options)
    : path_{std::move(path)}, options_{options} {
  check_options(options);
  const bool in_memory = path_.empty();
  std::unique_ptr<Connection> connection;
  auto lock = std::make_unique<WriteLock>(in_memory ? std::string{} : path_ + "-lock");
  if (in_memory) {
    connection = std::make_unique<Connection>(
        ":memory:", connection_options(options, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY));
  } else {
    connection = open_file(path_, options);
  }
  {
    const WriteLockGuard guard{*lock, options.busy_timeout};
    recognise(*connection, path_, options);
    if (!in_memory) use_wal(*connection, path_);
    sqlite::migrate(*connection, "eventstore", sql::migrations, now());
    facts_ = settle_facts(*connection, options);
  }
  conventions_ = {facts_.codec, options.publishes, options.log, options.metrics};
  if (!in_memory) {
    readers_ = std::make_unique<Readers>(path_, connection_options(options, SQLITE_OPEN_READWRITE));
  }
  writer_ = std::make_unique<Writer>(std::move(connection), std::move(lock), kinds_,
                                     Writer::Settings{.durability = facts_.durability,
                                                      .busy_timeout = options.busy_timeout,
                                                      .checkpoint_pages = options.checkpoint_pages,
                                                      .clock = options.clock,
                                                      .random = options.random,
                                                      .conventions = &conventions_});
}

Store::Core::~Core() {
  // Readers go first, so that the writer can move the whole log into the database.
  readers_.reset();
}

Reading& Store::Core::reading() noexcept {
  return readers_ ? static_cast<Reading&>(*readers_) : static_cast<Reading&>(*this);
}

void Store::Core::migrate(std::string_view module, std::span<const Migration> migrations) {
  writer_->run_alone([&](Connection& connection) {
    sqlite::migrate(connection, module, migrations, now());
  });
}

std::unique_ptr<Connection> Store::Core::connect(int flags) const {
  if (path_.empty()) throw UsageError{"a database in memory has one connection only"};
  return std::make_unique<Connection>(path_, connection_options(options_, flags));
}

}  // namespace stela::sqlite
