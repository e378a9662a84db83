// A temporary database for viewing an export.
#pragma once

#include <string>

namespace stela::tool {

/// A temporary folder, removed at the end. A folder left by a killed process is removed when the
/// next one is made. Threads: one at a time.
class ExportCopy {
 public:
  /// Exit if there is no space for it.
  ExportCopy();
  ~ExportCopy();
  ExportCopy(const ExportCopy&) = delete;
  ExportCopy& operator=(const ExportCopy&) = delete;

  /// The database's path. The file doesn't exist yet.
  std::string file() const { return folder_ + "/export.db"; }

 private:
  std::string folder_;
  /// The lock shows other processes that this one is alive.
  int lock_ = -1;
};

}  // namespace stela::tool
