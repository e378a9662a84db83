#include "database/sqlite/connection.hpp"

#include "database/sqlite/failure.hpp"

#include <stela/framework/codec/detail/base64.hpp>
#include <stela/framework/error.hpp>

#include <sys/stat.h>

#include <cctype>
#include <new>

namespace stela::sqlite {
namespace {

/// The first line of the SQL, after a message about its failure.
std::string in_quotes(std::string_view sql) {
  const std::size_t end = sql.find('\n');
  const bool has_more = end != std::string_view::npos && end + 1 < sql.size();
  return '"' + std::string{sql.substr(0, end)} + (has_more ? " …\"" : "\"");
}

}  // namespace

void PreparedStatement::check(int code) const {
  if (code != SQLITE_OK) fail(database_, code, "binding a value");
}

void PreparedStatement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(get(), parameter, value));
}

void PreparedStatement::bind(int parameter, std::string_view text) {
  // An empty view may have a null address, which SQLite would take for NULL.
  check(sqlite3_bind_text64(get(), parameter, text.empty() ? "" : text.data(), text.size(),
                            SQLITE_STATIC, SQLITE_UTF8));
}

void PreparedStatement::bind(int parameter, std::nullptr_t) {
  check(sqlite3_bind_null(get(), parameter));
}

void PreparedStatement::bind_blob(int parameter, std::string_view bytes) {
  check(sqlite3_bind_blob64(get(), parameter, bytes.empty() ? "" : bytes.data(), bytes.size(),
                            SQLITE_STATIC));
}

bool PreparedStatement::step() {
  const int code = sqlite3_step(get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  fail(database_, code, in_quotes(sqlite3_sql(get())));
}

void PreparedStatement::check_memory() const {
  if (sqlite3_errcode(database_) == SQLITE_NOMEM) throw std::bad_alloc{};
}

// Through the value: one look-up of the column instead of two.
std::string_view PreparedStatement::text(int column) const {
  sqlite3_value* const value = sqlite3_column_value(get(), column);
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) {
    check_memory();
    return {};
  }
  return {text, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

std::string_view PreparedStatement::blob(int column) const {
  sqlite3_value* const value = sqlite3_column_value(get(), column);
  const auto* const bytes = static_cast<const char*>(sqlite3_value_blob(value));
  if (bytes == nullptr) {
    check_memory();
    return {};
  }
  return {bytes, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

namespace {

/// Restores settings that SQL can change: those that guard stored data, and those that would stop
/// Stela. REPLACE deletes conflicting rows, and so must fire the triggers that forbid deletion. In
/// locking mode EXCLUSIVE, a writing connection waits until there is no other connection.
constexpr const char* own_settings =
    "PRAGMA recursive_triggers = ON; PRAGMA ignore_check_constraints = OFF; "
    "PRAGMA writable_schema = OFF; PRAGMA query_only = OFF; PRAGMA locking_mode = NORMAL; "
    "PRAGMA secure_delete = ON";

/// `stela_to_base64(bytes)`; NULL for NULL, as all functions say.
void to_base64(sqlite3_context* context, int /*count*/, sqlite3_value** values) noexcept try {
  if (sqlite3_value_type(*values) == SQLITE_NULL) return;
  const auto* const bytes = static_cast<const char*>(sqlite3_value_blob(*values));
  std::string text;
  base64::append(text, {bytes, static_cast<std::size_t>(sqlite3_value_bytes(*values))});
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
} catch (const std::bad_alloc&) {
  sqlite3_result_error_nomem(context);
}

/// `stela_from_base64(text)`.
void from_base64(sqlite3_context* context, int /*count*/, sqlite3_value** values) noexcept try {
  if (sqlite3_value_type(*values) == SQLITE_NULL) return;
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(*values));
  std::string bytes;
  if (text == nullptr || !base64::decode(text, bytes)) {
    return sqlite3_result_error(context, "it isn't base64", -1);
  }
  sqlite3_result_blob64(context, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
} catch (const std::bad_alloc&) {
  sqlite3_result_error_nomem(context);
}

/// A path as SQLite's URI, whatever it contains.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
    if (is_plain) {
      uri += c;
    } else {
      uri.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

Connection::Connection(const std::string& path, const ConnectionOptions& options) {
  sqlite3* database = nullptr;
  const int flags = options.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (options.immutable ? SQLITE_OPEN_URI : 0);
  const std::string name = options.immutable ? immutable_uri(path) : path;
  const int code = sqlite3_open_v2(name.c_str(), &database, flags,
                                   options.vfs.empty() ? nullptr : options.vfs.c_str());
  database_.reset(database);
  if (code != SQLITE_OK) fail(database, code, "opening '" + path + "'");
  const char* const file = sqlite3_db_filename(database, "main");
  open_.emplace(file != nullptr ? file : "");
  sqlite3_busy_timeout(database, static_cast<int>(options.busy_timeout.count()));
  // Only the writer runs checkpoints, under the write lock.
  sqlite3_wal_autocheckpoint(database, 0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  constexpr int traits = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  sqlite3_create_function(database, "stela_to_base64", 1, traits, nullptr, to_base64, nullptr,
                          nullptr);
  sqlite3_create_function(database, "stela_from_base64", 1, traits, nullptr, from_base64, nullptr,
                          nullptr);
  execute(own_settings);
  roll_back_ = prepare("ROLLBACK", SQLITE_PREPARE_PERSISTENT);
  if (!options.immutable) return;
  immutable_ = trace();
  if (immutable_->log_size > 0) refuse_changed();
}

Connection::~Connection() {
  if (!owner_.is_this() && sqlite3_get_autocommit(database_.get()) == 0) {
    // Closing it would roll back, in files shared with the parent, a transaction that the parent
    // may commit.
    for (auto& [sql, statement] : statements_) statement.abandon();
    (void)roll_back_.release();
    (void)database_.release();
    open_->stay();
  }
  statements_.clear();
}

PreparedStatement::Owner Connection::prepare(std::string_view sql, unsigned flags) {
  owner_.check();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle(), sql.data(), static_cast<int>(sql.size()), flags,
                                      &statement, nullptr);
  if (code != SQLITE_OK) fail(handle(), code, in_quotes(sql));
  return PreparedStatement::Owner{statement};
}

Connection::Trace Connection::trace() const noexcept {
  const char* const file = sqlite3_db_filename(handle(), "main");
  struct stat status {};
  struct stat log {};
  if (stat(file, &status) != 0) return {};
  if (stat((std::string{file} + "-wal").c_str(), &log) != 0) log.st_size = 0;
  const timespec& changed = status.st_mtim;
  return {changed.tv_sec * 1'000'000'000 + changed.tv_nsec, status.st_size, log.st_size};
}

void Connection::check_immutable() const {
  if (immutable_ && trace() != *immutable_) refuse_changed();
}

void Connection::refuse_changed() const {
  throw StoreFailed{std::string{"another connection wrote to '"} +
                    sqlite3_db_filename(handle(), "main") +
                    "' while it was read without a log; open it again"};
}

PreparedStatement& Connection::kept(std::string_view sql) {
  owner_.check();
  check_immutable();
  if (const auto known = statements_.find(sql.data()); known != statements_.end()) {
    return known->second;
  }
  PreparedStatement::Owner statement = prepare(sql, SQLITE_PREPARE_PERSISTENT);
  return statements_.try_emplace(sql.data(), handle(), std::move(statement)).first->second;
}

database::DatabaseName Connection::database() const noexcept {
  const char* const file = sqlite3_db_filename(handle(), "main");
  return {handle(), file != nullptr ? file : ""};
}

void Connection::execute(const std::string& sql) {
  owner_.check();
  const int code = sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(handle(), code, in_quotes(sql));
}

std::optional<std::int64_t> Connection::integer(const std::string& sql) {
  PreparedStatement statement{handle(), prepare(sql, 0)};
  Query query{statement};
  if (!query.step()) return std::nullopt;
  return query.integer(0);
}

void Connection::roll_back() noexcept {
  if (!in_transaction()) return;
  sqlite3_step(roll_back_.get());
  sqlite3_reset(roll_back_.get());
}

void Connection::sync_log() {
  owner_.check();
  const auto find_log = [&] {
    sqlite3_file* log = nullptr;
    sqlite3_file_control(handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    return log != nullptr && log->pMethods != nullptr ? log : nullptr;
  };
  sqlite3_file* log = find_log();
  if (log == nullptr) {
    // A connection opens the log at its first read.
    integer("SELECT count(*) FROM sqlite_schema");
    log = find_log();
  }
  const int code =
      log != nullptr ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : SQLITE_IOERR_FSYNC;
  if (code == SQLITE_OK) return;
  throw StoreFailed{std::string{"syncing the log failed: "} + sqlite3_errstr(code)};
}

bool Connection::has_moved() const noexcept {
  int has_moved = 0;
  sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  return has_moved != 0;
}

unsigned Connection::data_version() const noexcept {
  unsigned version = 0;
  sqlite3_file_control(handle(), "main", SQLITE_FCNTL_DATA_VERSION, &version);
  return version;
}

}  // namespace stela::sqlite
