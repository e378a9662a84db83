// A file with a secret, which nobody but its user and root may read.
#pragma once

#include <string>
#include <string_view>

namespace stela::nats {

/// As libpq treats keys: readable by the owner alone, or by a group if root owns it.
/// Threads: one at a time.
class SecretFile {
 public:
  /// Judges the file that it has opened. UsageError, naming `option`, if it can't be read, isn't a
  /// regular file, or others may read it too.
  SecretFile(std::string_view option, const std::string& path);
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  /// The whole text without the line break at its end. UsageError if there is none.
  std::string read() const;

 private:
  std::string option_;
  std::string path_;
  int file_ = -1;
};

}  // namespace stela::nats
