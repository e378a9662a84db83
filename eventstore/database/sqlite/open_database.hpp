// The databases that this process has open.
#pragma once

#include "database/owner.hpp"

#include <list>
#include <optional>
#include <string>

namespace stela::sqlite {

/// A record that this process has a database open. SQLite keeps the locks on a file in the memory
/// of the process. A forked child that opens it beside a copy of its parent's connection relies on
/// locks that it doesn't have, and other processes delete its log and reset its index.
/// Threads: one at a time.
class OpenDatabase {
 public:
  /// UsageError in a forked child that holds a copy of its parent's connection to `path`. An empty
  /// path, for a private database, isn't recorded.
  explicit OpenDatabase(const std::string& path);
  ~OpenDatabase();
  OpenDatabase(const OpenDatabase&) = delete;
  OpenDatabase& operator=(const OpenDatabase&) = delete;

  /// Keeps the record until the process ends, because the connection can't be closed.
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
