// A file with a secret, which only its user and root may read.
#pragma once

#include <string>
#include <string_view>

namespace stela::nats {

/// As libpq treats keys: readable only by the owner, or by a group if root owns it.
/// Threads: one at a time.
class SecretFile {
 public:
  /// Checks the opened file. UsageError, naming `option`, if it can't be read, isn't a regular
  /// file, or can be read by others.
  SecretFile(std::string_view option, const std::string& path);
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  /// The text without its final line break. UsageError if there is none.
  std::string read() const;

 private:
  std::string option_;
  std::string path_;
  int file_ = -1;
};

}  // namespace stela::nats
