#include "chaos/jumping_clock.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace stela::chaos {

JumpingClock::JumpingClock(const std::string& file) {
  const int opened = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool is_large_enough = ftruncate(opened, sizeof *ahead_us_) == 0;
  void* const page =
      mmap(nullptr, sizeof *ahead_us_, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  close(opened);
  if (!is_large_enough || page == MAP_FAILED) throw std::runtime_error{"there is no " + file};
  ahead_us_ = static_cast<std::int64_t*>(page);
}

JumpingClock::~JumpingClock() {
  munmap(ahead_us_, sizeof *ahead_us_);
}

void JumpingClock::set_ahead(std::chrono::microseconds by) {
  std::atomic_ref{* ahead_us_} = by.count();
}

Timestamp JumpingClock::now() const {
  return system_clock().now() + std::chrono::microseconds{std::atomic_ref{*ahead_us_}.load()};
}

}  // namespace stela::chaos
