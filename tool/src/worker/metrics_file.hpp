// A worker's metrics file, for a textfile collector.
#pragma once

#include <string>

namespace stela::tool {

/// Threads: one at a time.
class MetricsFile {
 public:
  /// Exit if it would overwrite anything but metrics, above all a file of `database`.
  MetricsFile(std::string path, const std::string& database);

  /// Replaces the file atomically. Exit if it can't be written.
  void write(const std::string& page) const;

 private:
  const std::string path_;
};

}  // namespace stela::tool
