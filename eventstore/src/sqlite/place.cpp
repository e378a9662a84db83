#include "sqlite/place.hpp"

#include <stela/framework/error.hpp>

#include <sys/stat.h>
#include <time.h>

#include <utility>

namespace stela::sqlite {

Place::Place(std::string path) : path_{std::move(path)}, file_{find()} {}

Place::File Place::find() const noexcept {
  struct stat status {};
  if (path_.empty() || stat(path_.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

void Place::check() const {
  if (find() == file_) return;
  throw StoreFailed{"the database '" + path_ +
                    "' was deleted, moved or replaced while it was open; nothing was written, and "
                    "nothing is read any more; put it back with its log, or close this store and "
                    "open what is there now"};
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
