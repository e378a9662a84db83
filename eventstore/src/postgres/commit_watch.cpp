#include "postgres/commit_watch.hpp"

#include "postgres/readers.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <utility>

namespace stela::postgres {
namespace {

using std::chrono::steady_clock;

/// While events come, and in a store where nothing happens.
constexpr std::chrono::milliseconds shortest_look_pause{1};
constexpr std::chrono::milliseconds longest_look_pause{20};
/// How much longer than a pause nothing has come before it.
constexpr int share_of_silence = 4;
/// While the server can't be reached.
constexpr std::chrono::milliseconds pause_after_failure{1000};

}  // namespace

CommitWatch::CommitWatch(EventStore& store, Sessions& sessions)
    : sessions_{sessions}, commits_{store.on_commit([this](const CommitNotice&) { wake(); })} {}

void CommitWatch::wake() noexcept {
  {
    const std::lock_guard lock{mutex_};
    is_woken_ = true;
  }
  woken_.notify_one();
}

void CommitWatch::wait_until(Time deadline) {
  while (true) {
    if (sleep_until(std::min(deadline, next_look_))) return;
    const Time now = steady_clock::now();
    if (now >= next_look_ && sees_events()) return;
    if (now >= deadline) return;
  }
}

bool CommitWatch::sleep_until(Time deadline) {
  std::unique_lock lock{mutex_};
  woken_.wait_until(lock, deadline, [this] { return is_woken_; });
  return std::exchange(is_woken_, false);
}

bool CommitWatch::sees_events() {
  try {
    std::int64_t last = 0;
    sessions_.read([&](Connection& connection) { last = last_sequence(connection); });
    const Time now = steady_clock::now();
    const bool has_come = std::exchange(seen_, last) != last;
    if (has_come) last_came_ = now;
    next_look_ = now + std::clamp<Time::duration>((now - last_came_) / share_of_silence,
                                                  shortest_look_pause, longest_look_pause);
    return has_come;
  } catch (const Error&) {
    // Whoever sleeps here finds out by himself.
    next_look_ = steady_clock::now() + pause_after_failure;
    return false;
  }
}

}  // namespace stela::postgres
