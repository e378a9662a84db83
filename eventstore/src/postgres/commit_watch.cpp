#include "postgres/commit_watch.hpp"

#include "postgres/reading.hpp"

#include <stela/framework/error.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace stela::postgres {
namespace {

using std::chrono::steady_clock;

/// The pauses between polls while events come, and in an idle store.
constexpr std::chrono::milliseconds shortest_look_pause{1};
constexpr std::chrono::milliseconds longest_look_pause{20};
/// The pause is the time since the last event, divided by this.
constexpr int share_of_silence = 4;
/// The pause between looks while asleep: an append may end before it rings.
constexpr std::chrono::milliseconds pause_of_sleep{1000};
/// The pause while the server can't be reached.
constexpr std::chrono::milliseconds pause_after_failure{1000};

int make_event() {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) throw StoreFailed{"this process has no file descriptor left; raise its limit"};
  return event;
}

}  // namespace

CommitWatch::CommitWatch(EventStore& store, Sessions& sessions)
    : sessions_{sessions},
      woken_{make_event()},
      commits_{store.on_commit([this](const CommitNotice&) { wake(); })},
      bell_{sessions} {}

CommitWatch::~CommitWatch() {
  commits_.disconnect();
  close(woken_);
}

void CommitWatch::wake() noexcept {
  eventfd_write(woken_, 1);
}

void CommitWatch::wait_until(Time deadline) {
  while (true) {
    if (sleep_until(std::min(deadline, next_look_))) break;
    const Time now = steady_clock::now();
    if (now >= next_look_ && sees_events()) break;
    // Remains asleep, because the caller may return soon.
    if (now >= deadline) return;
  }
  bell_.get_up();
  // A busy follower sleeps often and briefly, so it doesn't lie down again at once.
  next_look_ = steady_clock::now() + shortest_look_pause;
}

bool CommitWatch::sleep_until(Time deadline) {
  if (!bell_.is_asleep()) {
    wait_for_either(woken_, -1, deadline);
  } else if (bell_.sleep(woken_, deadline)) {
    next_look_ = {};
  }
  eventfd_t times = 0;
  return eventfd_read(woken_, &times) == 0;
}

bool CommitWatch::sees_events() {
  try {
    std::optional<std::int64_t> last = bell_.lie_down();
    if (!last) {
      sessions_.read([&](Connection& connection) { last = last_sequence(connection); });
    }
    const Time now = steady_clock::now();
    const bool has_come = std::exchange(seen_, *last) != *last;
    if (has_come) last_came_ = now;
    const Time::duration pause = std::clamp<Time::duration>(
        (now - last_came_) / share_of_silence, shortest_look_pause, longest_look_pause);
    next_look_ = now + (bell_.is_asleep() ? pause_of_sleep : pause);
    return has_come;
  } catch (const Error&) {
    // The follower meets the error in its own read.
    next_look_ = steady_clock::now() + pause_after_failure;
    return false;
  }
}

}  // namespace stela::postgres
