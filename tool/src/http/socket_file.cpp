#include "http/socket_file.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace stela::tool {
namespace {

/// Lets servers that start at the same time check a file one after the other.
class FolderLock {
 public:
  explicit FolderLock(const std::string& file) {
    const auto folder = std::filesystem::absolute(file).parent_path();
    folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ >= 0) ::flock(folder_, LOCK_EX);
  }
  ~FolderLock() {
    if (folder_ >= 0) ::close(folder_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw Misuse{"the path of a socket has at most " + std::to_string(sizeof address.sun_path - 1) +
                 " bytes"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

int new_socket() {
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// A busy server counts as listening, too.
bool is_served(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const int client = new_socket();
  const bool has_connected =
      ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const bool is_refused = !has_connected && errno == ECONNREFUSED;
  ::close(client);
  return !is_refused;
}

}  // namespace

SocketFile::SocketFile(std::string path, unsigned mode) : path_{std::move(path)} {
  const FolderLock lock{path_};
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) fail("it is another file");
    if (is_served(path_)) fail("a server listens there");
  }
  // The socket gets its permissions before it gets its name.
  const std::string hidden = path_ + ".new";
  ::unlink(hidden.c_str());
  listen_at(hidden, mode);
  ::lstat(hidden.c_str(), &status);
  device_ = status.st_dev;
  file_ = status.st_ino;
  if (::rename(hidden.c_str(), path_.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    ::unlink(hidden.c_str());
    fail(why);
  }
}

void SocketFile::listen_at(const std::string& path, unsigned mode) {
  const sockaddr_un address = address_of(path);
  socket_ = new_socket();
  const bool listens =
      socket_ >= 0 &&
      ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::chmod(path.c_str(), mode) == 0 && ::listen(socket_, SOMAXCONN) == 0;
  if (!listens) fail(std::strerror(errno));
}

void SocketFile::fail(const std::string& why) {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  throw Exit{failed, "can't listen on " + in_one_line(path_) + ": " + why};
}

int SocketFile::release() noexcept {
  return std::exchange(socket_, -1);
}

SocketFile::~SocketFile() {
  if (socket_ >= 0) ::close(socket_);
  struct stat status {};
  const bool is_own =
      ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == file_;
  if (is_own) ::unlink(path_.c_str());
}

}  // namespace stela::tool
