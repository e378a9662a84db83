// The SQLite C API with as little around it as there can be: what the baselines are written in.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stela::bench {

/// A prepared statement. Values are bound by whoever owns it, with sqlite3_bind_*.
class RawStatement {
 public:
  RawStatement(sqlite3* database, const char* sql);

  sqlite3_stmt* get() const noexcept { return statement_.get(); }
  operator sqlite3_stmt*() const noexcept { return get(); }

  bool step() {
    const int code = sqlite3_step(get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(code);
    return false;
  }
  void reset() noexcept { sqlite3_reset(get()); }
  /// A statement without rows, from its beginning to its end.
  void run() {
    const int code = sqlite3_step(get());
    sqlite3_reset(get());
    if (code != SQLITE_DONE) fail(code);
  }

  std::int64_t integer(int column) const { return sqlite3_column_int64(get(), column); }
  std::string_view bytes(int column) const {
    const auto* const data = static_cast<const char*>(sqlite3_column_blob(get(), column));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(get(), column))};
  }

  void bind(int parameter, std::int64_t value) { sqlite3_bind_int64(get(), parameter, value); }
  /// The bytes are read when the statement runs.
  void bind_text(int parameter, std::string_view text) {
    sqlite3_bind_text(get(), parameter, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
  void bind_blob(int parameter, std::string_view bytes) {
    sqlite3_bind_blob(get(), parameter, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_STATIC);
  }

 private:
  [[noreturn]] void fail(int code) const;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

struct RawOptions {
  bool full_sync = false;
  int checkpoint_pages = 4000;
};

/// An open database in WAL mode, made if it isn't there.
class RawDatabase {
 public:
  RawDatabase(const std::string& path, const RawOptions& options);

  sqlite3* get() const noexcept { return database_.get(); }
  operator sqlite3*() const noexcept { return get(); }
  void execute(const std::string& sql);
  /// The first column of the first row.
  std::int64_t integer(const std::string& sql);
  /// Leaves everything in the one file.
  void truncate_log();

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace stela::bench
