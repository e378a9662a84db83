#include "sqlite/presence.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace stela::sqlite {
namespace {

std::int64_t random_place() {
  const Uuid random = make_uuid();
  std::uint64_t bits = 0;
  std::memcpy(&bits, random.bytes().data() + random.bytes().size() - sizeof bits, sizeof bits);
  return first_presence + static_cast<std::int64_t>(bits % (first_presence / 2));
}

}  // namespace

Presence::Presence(const std::string& database) : number_{random_place()} {
  if (database.empty()) return;
  file_.emplace(database);
  lock();
}

void Presence::renew() {
  if (!file_ || !file_->is_deleted()) return;
  file_->reopen();
  lock();
}

void Presence::lock() {
  struct flock byte = byte_range(F_WRLCK, number_, 1);
  if (fcntl(file_->descriptor(), F_OFD_SETLK, &byte) == 0) return;
  throw StoreFailed{"locking a byte of '" + file_->path() + "' failed: " + std::strerror(errno)};
}

std::optional<bool> Presence::lives(const std::string& database, std::int64_t number) noexcept {
  if (database.empty() || number < first_presence) return {};
  const int file = ::open(LockFile::path_of(database).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno == ENOENT ? std::optional{false} : std::nullopt;
  struct flock byte = byte_range(F_WRLCK, number, 1);
  const bool is_known = fcntl(file, F_OFD_GETLK, &byte) == 0;
  close(file);
  return is_known ? std::optional{byte.l_type != F_UNLCK} : std::nullopt;
}

}  // namespace stela::sqlite
