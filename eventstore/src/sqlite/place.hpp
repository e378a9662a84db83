// Whether a file is still what stands at its path.
#pragma once

#include "database/sqlite/connection.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace stela::sqlite {

/// The file that stood at a path when it was opened. Another one may be put there meanwhile: then
/// connections that are open show the old one, and those that are opened later the new one.
/// Threads: any number at once.
class Place {
 public:
  /// Of the file that `connection` has open; StoreFailed if it isn't at `path` any more. An empty
  /// path is that of a database that nobody else can see, and which is never replaced.
  Place(std::string path, const Connection& connection);

  /// StoreFailed if the file was deleted, moved or replaced, or the system doesn't say.
  void check() const;
  /// The same, for what is done again and again: at most once in each tick of the system's coarse
  /// clock, which is a few milliseconds, as asking costs a tenth of loading an aggregate.
  void check_now_and_then() const;

 private:
  struct File {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  /// Nothing if there is no such file.
  std::optional<File> find() const;
  [[noreturn]] void refuse(const std::string& what) const;

  const std::string path_;
  /// Set for as long as the path isn't empty.
  std::optional<File> file_;
  mutable std::atomic<std::int64_t> checked_at_{0};
};

}  // namespace stela::sqlite
