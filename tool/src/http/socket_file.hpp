// A Unix socket with a path.
#pragma once

#include <sys/types.h>

#include <string>

namespace stela::tool {

/// Listens from construction on, and removes the file at the end. Threads: one at a time.
class SocketFile {
 public:
  /// Replaces the file of a dead server. Exit if a server listens there, or if the file isn't a
  /// socket.
  SocketFile(std::string path, unsigned mode);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

  /// Releases the listening socket to the caller.
  int release() noexcept;

 private:
  [[noreturn]] void fail(const std::string& why);
  void listen_at(const std::string& path, unsigned mode);

  const std::string path_;
  int socket_ = -1;
  /// Identifies its own file: another server may have replaced it.
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace stela::tool
