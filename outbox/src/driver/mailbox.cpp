#include "driver/mailbox.hpp"

#include <stela/framework/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace stela::relay {

Mailbox::Mailbox(std::string log) : log_{std::move(log)} {
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) throw StoreFailed{"no file descriptor is left to wait on"};
  if (!log_.empty()) watch_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

Mailbox::~Mailbox() {
  close(event_);
  if (watch_ >= 0) close(watch_);
}

void Mailbox::take(Answer answer) {
  {
    const std::lock_guard lock{mutex_};
    answers_.push_back(std::move(answer));
  }
  signal();
}

void Mailbox::wake() noexcept {
  signal();
}

void Mailbox::signal() noexcept {
  if (signalled_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  // It can only fail when it is signalled already.
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
}

std::vector<Answer> Mailbox::answers() {
  const std::lock_guard lock{mutex_};
  return std::exchange(answers_, {});
}

void Mailbox::watch() {
  if (watch_ < 0 || watching_) return;
  watching_ = inotify_add_watch(watch_, log_.c_str(), IN_MODIFY | IN_DELETE_SELF) >= 0;
}

bool Mailbox::read_watch() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool written = false;
  for (;;) {
    const ssize_t size = read(watch_, buffer.data(), buffer.size());
    if (size <= 0) return written;
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      if ((event.mask & IN_MODIFY) != 0) written = true;
      if ((event.mask & (IN_DELETE_SELF | IN_IGNORED)) != 0) watching_ = false;
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
}

bool Mailbox::wait_until(std::chrono::steady_clock::time_point deadline) {
  using namespace std::chrono;
  watch();
  std::array<pollfd, 2> files{pollfd{event_, POLLIN, 0}, pollfd{watch_, POLLIN, 0}};
  const auto left = ceil<nanoseconds>(deadline - steady_clock::now());
  if (left.count() > 0) {
    const timespec wait{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    ppoll(files.data(), watch_ >= 0 ? 2 : 1, &wait, nullptr);
  }
  if (signalled_.exchange(false, std::memory_order_acq_rel)) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = read(event_, &count, sizeof count);
  }
  return watch_ >= 0 && read_watch();
}

}  // namespace stela::relay
