#include "sqlite/place.hpp"

#include <stela/framework/error.hpp>

#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stela::sqlite {

Place::Place(std::string path, const Connection& connection) : path_{std::move(path)} {
  if (path_.empty()) return;
  file_ = find();
  // Check this last: then either the found file is the open one, or a later file is another one.
  if (file_ && !connection.has_moved()) return;
  refuse("was deleted, moved or replaced while it was being opened; open the new file");
}

std::optional<Place::File> Place::find() const {
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0) return File{status.st_dev, status.st_ino};
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  refuse(std::string{"can't be found: "} + std::strerror(errno));
}

void Place::refuse(const std::string& what) const {
  throw StoreFailed{"the database '" + path_ + "' " + what};
}

void Place::check() const {
  if (path_.empty() || find() == file_) return;
  refuse(
      "was deleted, moved or replaced while it was open; nothing was written, and reads have "
      "stopped; put it back with its log, or restart this process to use the new file");
}

void Place::check_now_and_then() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t tick = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  if (checked_at_.load(std::memory_order_relaxed) == tick) return;
  check();
  checked_at_.store(tick, std::memory_order_relaxed);
}

}  // namespace stela::sqlite
