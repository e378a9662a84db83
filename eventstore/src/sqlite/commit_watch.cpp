#include "sqlite/commit_watch.hpp"

#include "sqlite/core.hpp"

#include <stela/framework/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace stela::sqlite {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// How soon to check for a commit after a write to the log: it becomes visible once the disk has
/// synced it.
constexpr std::chrono::nanoseconds first_look = 250us;
/// How often to check if the log can't be watched: the system has no watches left, or the log is
/// gone.
constexpr std::chrono::nanoseconds unwatched_look = 5ms;
constexpr std::string_view data_version = "PRAGMA data_version";

}  // namespace

CommitWatch::CommitWatch(Core& core)
    : log_{core.path().empty() ? std::string{} : core.path() + "-wal"},
      connection_{log_.empty() ? nullptr : core.connect()} {
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) throw StoreFailed{"no file descriptor is left to wait on"};
  if (!log_.empty()) watch_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  commits_ = core.on_commit([this](const CommitNotice&) { wake(); });
}

CommitWatch::~CommitWatch() {
  commits_.disconnect();
  close(event_);
  if (watch_ >= 0) close(watch_);
}

void CommitWatch::wake() noexcept {
  if (signalled_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  // It fails only if it is signalled already.
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
}

void CommitWatch::wait_until(Time deadline) {
  for (;;) {
    watch_log();
    const bool woken = sleep_until(std::min(deadline, next_look()));
    if (woken || steady_clock::now() >= deadline) return;
    // It may be one of this process's own commits: the next call checks again.
    if (connection_ && sees_commit()) return;
  }
}

CommitWatch::Time CommitWatch::next_look() const {
  if (!connection_) return Time::max();
  const Time now = steady_clock::now();
  if (!watching_) return now + unwatched_look;
  const std::chrono::nanoseconds passed = now - written_at_;
  // Often at first, because a commit usually follows at once; but a disk may take any time.
  return now + std::max(first_look, passed / 4);
}

bool CommitWatch::sleep_until(Time deadline) {
  using namespace std::chrono;
  std::array<pollfd, 2> files{pollfd{event_, POLLIN, 0}, pollfd{watch_, POLLIN, 0}};
  const auto left = ceil<nanoseconds>(deadline - steady_clock::now());
  if (left.count() > 0) {
    const timespec wait{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    ppoll(files.data(), watch_ >= 0 ? 2 : 1, &wait, nullptr);
  }
  if (watch_ >= 0 && read_watch()) written_at_ = steady_clock::now();
  if (!signalled_.exchange(false, std::memory_order_acq_rel)) return false;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(event_, &count, sizeof count);
  return true;
}

void CommitWatch::watch_log() {
  if (watch_ < 0 || watching_) return;
  watching_ = inotify_add_watch(watch_, log_.c_str(), IN_MODIFY | IN_DELETE_SELF) >= 0;
  // A commit written just before may not be visible yet.
  if (watching_) written_at_ = steady_clock::now();
}

bool CommitWatch::read_watch() {
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

bool CommitWatch::sees_commit() {
  Query version = connection_->query(data_version);
  version.step();
  return std::exchange(seen_version_, version.integer(0)) != version.integer(0);
}

}  // namespace stela::sqlite
