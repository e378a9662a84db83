// The file that a worker writes its metrics to, for a textfile collector.
#pragma once

#include <string>

namespace stela::tool {

/// Threads: one at a time.
class MetricsFile {
 public:
  /// Exit if it would overwrite anything but metrics: a file of `database`, above all.
  MetricsFile(std::string path, const std::string& database);

  /// Readers never see half of `page`. Exit if it can't be written.
  void write(const std::string& page) const;

 private:
  const std::string path_;
};

}  // namespace stela::tool
