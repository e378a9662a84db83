#include "relay/lane.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <utility>

namespace stela::relay {

using namespace std::chrono_literals;

namespace {

/// How often a partition that lost messages is looked at again.
constexpr auto lost_interval = std::chrono::minutes{1};

}  // namespace

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

bool Lane::acquire() {
  // Trusted from before the attempt: how long the call took is not ours to know.
  const Steady begun = core_.now();
  std::optional<Standing> standing;
  const std::chrono::microseconds ttl = core_.options.lease_ttl;
  if (!guarded([&] { standing = core_.store.acquire(partition_, core_.worker, ttl); }))
    return false;
  if (!standing) return false;
  begin_lease(*standing, begun);
  // Wall time may have been set back since: no wait is longer than one that we would begin.
  held_until_ = begun + std::min(standing->backoff_left, longest_backoff(core_.options));
  ++core_.counts.leased;
  begin(*standing);
  return true;
}

void Lane::begin_lease(const Standing& standing, Steady begun) {
  const std::chrono::microseconds ttl = core_.options.lease_ttl;
  owned_ = true;
  draining_ = false;
  epoch_ = standing.epoch;
  run_ = standing.run;
  trusted_until_ = begun + ttl - ttl / 10;
  attempts_ = standing.attempts;
}

void Lane::look_for_lost() {
  const Steady begun = core_.now();
  if (owned_ || begun < next_look_) return;
  next_look_ = begun + lost_interval;
  std::optional<Standing> standing;
  const std::chrono::microseconds ttl = core_.options.lease_ttl;
  if (!guarded([&] { standing = core_.store.acquire_lost(partition_, core_.worker, ttl); })) return;
  if (!standing) return;
  begin_lease(*standing, begun);
  held_until_ = {};
  looking_ = true;
  begin(*standing);
}

void Lane::end_look(Look look) {
  bool continues = false;
  const bool is_whole = look == Look::whole;
  if (look != Look::lost) {
    guarded([&] { continues = core_.store.continue_lost(lease()); });
  }
  if (continues) {
    core_.report(Incident::Kind::broker_back, partition_, {},
                 is_whole ? "the broker has again what it seemed to have lost; the partition "
                            "continues"
                          : "the broker has the end again of what it seemed to have lost; the "
                            "partition continues, and messages before it may be missing");
  }
  // Whoever takes the lease next begins as after any other stop.
  release();
}

void Lane::renew() {
  if (!owned_) return;
  const Steady begun = core_.now();
  const std::chrono::microseconds ttl = core_.options.lease_ttl;
  bool renewed = false;
  if (!guarded([&] { renewed = core_.store.renew(lease(), ttl); })) {
    // A store that can't be reached for so long has no owner that we know of.
    if (core_.now() >= trusted_until_) lose("the store couldn't be reached to renew its lease");
    return;
  }
  if (renewed) {
    trusted_until_ = begun + ttl - ttl / 10;
  } else {
    lose("its lease couldn't be renewed");
  }
}

void Lane::release() {
  if (!owned_) return;
  // Without success the lease runs out by itself.
  guarded([&] { core_.store.release(lease()); });
  if (!std::exchange(looking_, false)) ++core_.counts.released;
  owned_ = false;
  misfit_.clear();
  is_unanswered_ = false;
  forget();
}

void Lane::lose(std::string_view why) {
  ++core_.counts.fenced;
  core_.report(Incident::Kind::fenced, partition_, {}, std::string{why});
  owned_ = false;
  looking_ = false;
  misfit_.clear();
  is_unanswered_ = false;
  forget();
}

void Lane::stop(StopReason reason, std::string detail) {
  bool noted = false;
  if (!guarded([&] { noted = core_.store.stop(lease(), reason, detail); })) return;
  if (!noted) return lose("its epoch has passed");
  core_.report(Incident::Kind::stopped, partition_, {},
               std::string{to_string(reason)} + ": " + detail);
  next_look_ = core_.now() + lost_interval;
  release();
}

void Lane::back_off(std::string error, FailureClass failure, const PendingMessage* message,
                    int message_attempts) {
  ++attempts_;
  const auto wait = backoff_of(core_.options).after(attempts_, core_.random);
  held_until_ = core_.now() + wait;
  Trouble trouble{
      .attempts = attempts_, .backoff = wait, .error = std::move(error), .failure = failure};
  if (message != nullptr) {
    trouble.message = *message;
    trouble.message_attempts = message_attempts;
  }
  bool noted = false;
  if (guarded([&] { noted = core_.store.note(lease(), trouble); }) && !noted) {
    lose("its epoch has passed");
  }
}

void Lane::on_silence(const std::string& what) {
  is_unanswered_ = true;
  core_.session_doubted = true;
  core_.report(Incident::Kind::publish_failed, partition_, {}, what);
}

void Lane::on_misfit(const std::string& why, FailureClass failure) {
  if (misfit_ != why) core_.report(Incident::Kind::misconfigured, partition_, {}, why);
  misfit_ = why;
  back_off(why, failure);
}

void Lane::recover() {
  if (!misfit_.empty()) {
    core_.report(Incident::Kind::broker_back, partition_, {}, "the broker answers for it again");
    misfit_.clear();
  }
  if (attempts_ == 0) return;
  attempts_ = 0;
  held_until_ = {};
  bool noted = false;
  if (guarded([&] { noted = core_.store.note(lease(), {}); }) && !noted) {
    lose("its epoch has passed");
  }
}

void Lane::count(const Advance& advance) {
  for (const PublishedRun& run : advance.published) core_.counts.published += run.count;
  for (const ParkedMessage& parked : advance.parked) {
    ++core_.counts.parked;
    if (parked.reason == ParkedMessage::Reason::behind) continue;
    core_.report(Incident::Kind::parked, partition_, parked.sequence, parked.error);
  }
  for (const ParkedMessage& skipped : advance.skipped) {
    ++core_.counts.skipped;
    core_.report(Incident::Kind::skipped, partition_, skipped.sequence, skipped.error);
  }
}

void Lane::store_trouble(const Error& error) {
  ++store_failures_;
  const follow::Backoff backoff{50ms, 2s, core_.options.retry_jitter};
  const auto wait = backoff.after(store_failures_, core_.random);
  held_until_ = std::max(held_until_, core_.now() + wait);
  core_.report_trouble(partition_, error);
}

void Lane::pump(int& budget) {
  if (!owned_ || draining_ || looking_ || budget <= 0 || core_.session == 0) return;
  if (is_backing_off() || !is_trusted()) return;
  send(budget);
}

}  // namespace stela::relay
