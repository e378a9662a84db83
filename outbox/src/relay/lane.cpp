#include "relay/lane.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <utility>

namespace stela::relay {

using namespace std::chrono_literals;

std::string_view to_string(Incident::Kind kind) noexcept {
  switch (kind) {
    case Incident::Kind::publish_failed:
      return "publish_failed";
    case Incident::Kind::parked:
      return "parked";
    case Incident::Kind::skipped:
      return "skipped";
    case Incident::Kind::stopped:
      return "stopped";
    case Incident::Kind::fenced:
      return "fenced";
    case Incident::Kind::broker_down:
      return "broker_down";
    case Incident::Kind::broker_back:
      return "broker_back";
    case Incident::Kind::misconfigured:
      return "misconfigured";
    case Incident::Kind::store_trouble:
      return "store_trouble";
  }
  return "unknown";
}

bool Lane::take(bool to_look) {
  // Trust begins before the attempt, because the call's duration is unknown.
  const Steady begun = core_.now();
  std::optional<Standing> standing;
  guarded([&] {
    standing = to_look ? core_.store.acquire_lost(partition_, core_.worker, ttl())
                       : core_.store.acquire(partition_, core_.worker, ttl());
  });
  if (!standing) return false;
  owned_ = true;
  draining_ = false;
  looking_ = to_look;
  epoch_ = standing->epoch;
  run_ = standing->run;
  trust_from(begun);
  attempts_ = standing->attempts;
  store_failures_ = 0;
  // Wall time may have been set back since, so the wait is limited to our longest one.
  const auto wait = std::min(standing->backoff_left, longest_backoff(core_.options));
  held_until_ = to_look ? Steady{} : begun + wait;
  if (!to_look) ++core_.counts.leased;
  begin(*standing);
  return true;
}

void Lane::look_for_lost() {
  const Steady now = core_.now();
  if (owned_ || now < next_look_) return;
  next_look_ = now + lost_interval;
  take(true);
}

void Lane::renew() {
  if (!owned_) return;
  const Steady begun = core_.now();
  const auto renewed = [&] { return core_.store.renew(lease(), ttl()); };
  if (change(renewed, "its lease couldn't be renewed")) return trust_from(begun);
  // After so long without the store, the lease can't be relied on.
  if (owned_ && core_.now() >= trusted_until_) {
    lose("the store couldn't be reached to renew its lease");
  }
}

void Lane::release() {
  if (!owned_) return;
  // On failure the lease runs out by itself.
  guarded([&] { core_.store.release(lease()); });
  if (!looking_) ++core_.counts.released;
  let_go();
}

void Lane::lose(std::string_view why) {
  ++core_.counts.fenced;
  core_.report(Incident::Kind::fenced, partition_, {}, std::string{why});
  let_go();
}

void Lane::let_go() {
  owned_ = looking_ = false;
  misfit_.clear();
  is_unanswered_ = false;
  forget();
}

bool Lane::may_send() const {
  return is_kept() && core_.session != 0 && !is_backing_off() && core_.now() < trusted_until_;
}

void Lane::stop(StopReason reason, std::string detail) {
  if (!change([&] { return core_.store.stop(lease(), reason, detail); })) return;
  core_.report(Incident::Kind::stopped, partition_, {},
               std::string{to_string(reason)} + ": " + detail);
  next_look_ = core_.now() + lost_interval;
  release();
}

void Lane::back_off(Trouble trouble) {
  trouble.attempts = ++attempts_;
  trouble.backoff = backoff_of(core_.options).after(attempts_, core_.random);
  held_until_ = core_.now() + trouble.backoff;
  note(trouble);
}

void Lane::recover() {
  if (!misfit_.empty()) {
    core_.report(Incident::Kind::broker_back, partition_, {}, "the broker answers for it again");
    misfit_.clear();
  }
  if (std::exchange(attempts_, 0) == 0) return;
  held_until_ = {};
  note({});
}

void Lane::on_silence(const std::string& what) {
  is_unanswered_ = true;
  core_.session_doubted = true;
  core_.report(Incident::Kind::publish_failed, partition_, {}, what);
}

void Lane::on_misfit(const Answer& answer) {
  if (misfit_ != answer.detail) {
    core_.report(Incident::Kind::misconfigured, partition_, {}, answer.detail);
  }
  misfit_ = answer.detail;
  back_off({.error = answer.detail, .failure = answer.failure});
}

void Lane::store_trouble(const Error& error) {
  ++store_failures_;
  const follow::Backoff backoff{50ms, 2s, core_.options.retry_jitter};
  const auto wait = backoff.after(store_failures_, core_.random);
  held_until_ = std::max(held_until_, core_.now() + wait);
  core_.report_trouble(partition_, error);
}

}  // namespace stela::relay
