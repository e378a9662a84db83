// A database for the length of a look at an export.
#pragma once

#include <string>

namespace stela::tool {

/// A folder of its own for temporary files, which goes with it. One whose process was killed goes
/// with the next that is made. Threads: one at a time.
class ExportCopy {
 public:
  /// Exit if there is no room for it.
  ExportCopy();
  ~ExportCopy();
  ExportCopy(const ExportCopy&) = delete;
  ExportCopy& operator=(const ExportCopy&) = delete;

  /// Of the database, which isn't there yet.
  std::string file() const { return folder_ + "/export.db"; }

 private:
  std::string folder_;
  /// Whoever holds its lock is alive.
  int lock_ = -1;
};

}  // namespace stela::tool
