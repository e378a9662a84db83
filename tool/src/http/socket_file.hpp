// A socket that is a file.
#pragma once

#include <sys/types.h>

#include <string>

namespace stela::tool {

/// Listens from the beginning, and removes the file at the end. Threads: one at a time.
class SocketFile {
 public:
  /// Takes the place of a file that a dead server has left. Exit if a server listens there, or if
  /// it is no socket.
  SocketFile(std::string path, unsigned mode);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

  /// The listening socket, from now on the caller's.
  int release() noexcept;

 private:
  [[noreturn]] void fail(const std::string& why);
  void listen_at(const std::string& path, unsigned mode);

  const std::string path_;
  int socket_ = -1;
  /// Which file is its own: another server may have taken its place.
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace stela::tool
