#include "postgres/outage.hpp"

#include <algorithm>
#include <thread>

namespace stela::postgres {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto first_outage_pause = 50ms;
constexpr auto longest_outage_pause = 1000ms;

}  // namespace

void Outage::wait_for_turn() {
  Time until;
  {
    const std::lock_guard lock{mutex_};
    if (!since_) return;
    until = next_;
    if (until > steady_clock::now() && until > *since_ + patience_) throw StoreBusy{why_};
  }
  std::this_thread::sleep_until(until);
}

void Outage::check() {
  const std::lock_guard lock{mutex_};
  if (since_) throw StoreBusy{why_};
}

bool Outage::may_try_again(std::string why) {
  const std::lock_guard lock{mutex_};
  const Time now = steady_clock::now();
  if (!since_) since_ = now;
  why_ = std::move(why);
  // Of several simultaneous attempts, only the first extends the pause.
  if (now >= next_) {
    pause_ =
        std::clamp<std::chrono::milliseconds>(pause_ * 2, first_outage_pause, longest_outage_pause);
    next_ = now + pause_;
  }
  return next_ <= *since_ + patience_;
}

void Outage::end() {
  const std::lock_guard lock{mutex_};
  since_.reset();
  pause_ = {};
}

}  // namespace stela::postgres
