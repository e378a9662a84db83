// doctor's examination of a SQLite database.
#include "cli/text.hpp"
#include "commands/doctor.hpp"
#include "write_access.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/error.hpp>

#include <sqlite3.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

namespace stela::tool {
namespace {

void look_at_place(Examination& examination, const std::string& path) {
  struct statfs system {};
  if (statfs(path.c_str(), &system) == 0) {
    constexpr std::array<long, 4> remote{0x6969, 0xff534d42, 0x517b, 0xfe534d42};
    const bool is_remote =
        std::find(remote.begin(), remote.end(), static_cast<long>(system.f_type)) != remote.end();
    if (is_remote) {
      examination.bad("file locks", "the database is on a network file system",
                      "move it to a local disk: locks over the network are unreliable");
    } else {
      examination.fine("file locks", "the database is on a local file system");
    }
  }
  std::error_code error;
  const auto log_size = std::filesystem::file_size(path + "-wal", error);
  if (!error && log_size > 256U * 1024 * 1024) {
    examination.warn("write-ahead log",
                     "it has grown to " + in_bytes(static_cast<std::int64_t>(log_size)),
                     "a reader keeps a transaction open: end it");
  } else {
    examination.fine("write-ahead log",
                     error ? "empty" : in_bytes(static_cast<std::int64_t>(log_size)));
  }
  struct statvfs space {};
  if (statvfs(path.c_str(), &space) != 0) return;
  const auto free =
      static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
  if (free < std::int64_t{256} * 1024 * 1024) {
    examination.bad("space", in_bytes(free) + " left on the disk",
                    "free some space: appends fail when the disk is full; nothing is lost");
  } else {
    examination.fine("space", in_bytes(free) + " left on the disk");
  }
}

/// Examines fixed properties of the file: each should be as Stela creates it, and has a remedy.
void look_at_pragmas(Examination& examination, const std::string& path) {
  struct Wanted {
    const char* pragma;
    std::string_view value;
    const char* advice;
  };
  constexpr std::array wanted{
      Wanted{"journal_mode", "wal",
             "run PRAGMA journal_mode = wal while no process uses the database"},
      Wanted{"page_size", "4096",
             "this page size is slow: export it, and import it into a new database"},
      Wanted{"encoding", "UTF-8", "export it, and import it into a new database"}};
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database{raw, sqlite3_close_v2};
  std::string found;
  for (const Wanted& one : wanted) {
    std::string value;
    const auto take = [](void* text, int, char** columns, char**) {
      *static_cast<std::string*>(text) = columns[0] != nullptr ? columns[0] : "";
      return 0;
    };
    const std::string query = std::string{"PRAGMA "} + one.pragma;
    if (opened == SQLITE_OK) sqlite3_exec(raw, query.c_str(), take, &value, nullptr);
    found.append(found.empty() ? "" : ", ").append(one.pragma).append(" ").append(value);
    if (value != one.value) {
      return examination.warn(
          "pragmas",
          std::string{one.pragma} + " is '" + value + "', not '" + std::string{one.value} + "'",
          one.advice);
    }
  }
  examination.fine("pragmas", found);
}

/// False if the file can't be written to.
bool look_at_file_writes(Examination& examination, Store& store) try {
  if (const auto problem = find_write_problem(sqlite::path(store))) {
    if (problem->is_of_this_user) {
      examination.warn(
          "writing", "the database " + problem->what,
          "run this as a user with write permission; the state of the workers is unknown");
    } else {
      examination.bad("writing", "the database " + problem->what,
                      "free space or grant permission, and workers continue; nothing is lost");
    }
    return false;
  }
  // Begins and ends a transaction without a change.
  store.transact([](Transaction&) {});
  examination.fine("writing", "the database can be written to");
  return true;
} catch (const Error& e) {
  examination.bad("writing", e.what(), "appends and workers are blocked by the same problem");
  return true;
}

}  // namespace

void look_at_sqlite(Examination& examination) {
  const int version = sqlite3_libversion_number();
  const std::string text = std::string{"version "} + sqlite3_libversion();
  // https://sqlite.org/wal.html: resetting the log during a commit could lose that commit.
  if (version < 3'051'003) {
    examination.warn("SQLite", text + " can lose a commit when the log is reset beside it",
                     "Stela's own writers prevent that with a lock; let no other program write to "
                     "this file, or use SQLite 3.51.3 or newer");
  } else {
    examination.fine("SQLite", text);
  }
}

void look_at_file(Examination& examination, Store& store) {
  const std::string& path = sqlite::path(store);
  // SQLite can't read a log without writing files beside it.
  if (look_at_file_writes(examination, store)) look_at_pragmas(examination, path);
  look_at_place(examination, path);
}

}  // namespace stela::tool
