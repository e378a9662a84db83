// Which databases this process has open.
#pragma once

#include "database/owner.hpp"

#include <list>
#include <optional>
#include <string>

namespace stela::sqlite {

/// A note that this process has a database open. SQLite keeps the locks on a file in the memory of
/// the process: a forked child that opens it beside the copy of a connection of its parent's counts
/// on locks that it doesn't have, and others delete its log and reset its index under it.
/// Threads: one at a time.
class OpenDatabase {
 public:
  /// UsageError in a forked child, if it has a copy of a connection of its parent's to `path`.
  /// Nothing is noted of an empty path: a database that nobody else can see.
  explicit OpenDatabase(const std::string& path);
  ~OpenDatabase();
  OpenDatabase(const OpenDatabase&) = delete;
  OpenDatabase& operator=(const OpenDatabase&) = delete;

  /// The connection can't be closed, and stays until the process ends.
  void stay() noexcept { entry_.reset(); }

 private:
  friend class OpenDatabases;
  struct Entry {
    std::string path;
    database::OwningProcess owner;
  };

  std::optional<std::list<Entry>::iterator> entry_;
};

}  // namespace stela::sqlite
