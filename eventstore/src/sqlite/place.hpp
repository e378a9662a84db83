// Checks whether a file is still at its path.
#pragma once

#include "database/sqlite/connection.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace stela::sqlite {

/// The file that was at a path when it was opened. Another file may take its place: then open
/// connections show the old one, and new connections the new one.
/// Threads: any number at once.
class Place {
 public:
  /// The file that `connection` has open; StoreFailed if it is no longer at `path`. An empty path
  /// is for a private database, which is never replaced.
  Place(std::string path, const Connection& connection);

  /// StoreFailed if the file was deleted, moved or replaced, or the system can't tell.
  void check() const;
  /// The same for frequent calls: checks at most once per tick of the system's coarse clock, a few
  /// milliseconds, because the check costs a tenth of loading an aggregate.
  void check_now_and_then() const;

 private:
  struct File {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  /// Nothing if the file doesn't exist.
  std::optional<File> find() const;
  [[noreturn]] void refuse(const std::string& what) const;

  const std::string path_;
  /// Set unless the path is empty.
  std::optional<File> file_;
  mutable std::atomic<std::int64_t> checked_at_{0};
};

}  // namespace stela::sqlite
