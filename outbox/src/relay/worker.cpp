#include "relay/worker.hpp"

#include "relay/membership.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <utility>

namespace stela::relay {

using namespace std::chrono_literals;

namespace {

constexpr auto max_probe_interval = 30s;
/// Asking an unreachable server is cheap, and everything waits for it.
constexpr auto max_connect_interval = 5s;

}  // namespace

Worker::Worker(const RelayOptions& options, Fence fence, const Ports& ports)
    : options_{options},
      answers_{ports.answers},
      core_{.options = options_,
            .fence = fence,
            .worker = options_.worker,
            .store_id = {},
            .store = ports.store,
            .publisher = ports.publisher,
            .clock = ports.clock,
            .random = ports.random,
            .observer = ports.observer} {}

// --- life

void Worker::start() {
  core_.store_id = core_.store.store_id();
  if (std::exchange(stopped_, false)) {
    stopping_ = false;
    // The stop has ended the session.
    broker_ = Broker::down;
    core_.session = 0;
    ++last_session_;
  }
  started_ = true;
  next_beat_ = next_look_ = next_connect_ = since_ = core_.now();
}

void Worker::stop() {
  stopping_ = true;
  for (auto& [partition, lane] : lanes_) lane.drain();
}

void Worker::run_due() {
  if (!started_ || stopped_) return;
  const Steady now = core_.now();
  if (now >= next_beat_) beat();
  if (broker_ == Broker::down && now >= next_connect_) connect();
  if (broker_ == Broker::connecting && now >= connecting_since_ + options_.publish_timeout) {
    drop_session("no answer while connecting", false);
  }
  if (may_look() && now >= next_look_) look();
  for (auto& [partition, lane] : lanes_) lane.on_time();
  watch_service();
  pump();
  if (core_.session_failed) drop_session("the client refused a call", false);
  probe();
  hand_over_drained();
}

void Worker::pump() {
  unfinished_ = false;
  // Each partition gets a share of what is sent at once, so that none starves the others.
  const auto sharers = static_cast<int>(std::max<std::size_t>(owned_partitions(), 1));
  const int share = std::max(1, options_.window / sharers);
  core_.share_of_bytes = options_.max_in_flight_bytes / sharers;
  core_.step_end = core_.now() + options_.lease_renew / 8;
  auto next = lanes_.lower_bound(std::exchange(first_lane_, {}));
  const bool was_full = core_.is_full();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (next == lanes_.end()) next = lanes_.begin();
    FencedLane& lane = (next++)->second;
    int budget = share;
    lane.pump(budget);
    lane.mark_if_due();
    // Its share is used up, and no pending answer would wake it.
    if (budget <= 0 && lane.is_idle()) unfinished_ = true;
    if (core_.now() < core_.step_end) continue;
    unfinished_ = true;
    if (next != lanes_.end()) first_lane_ = next->first;
    break;
  }
  // Some lanes may have waited for room that others freed.
  if (was_full && !core_.is_full()) unfinished_ = true;
}

Steady Worker::deadline() const {
  if (!started_ || stopped_) return never;
  if (unfinished_) return core_.now();
  Steady earliest = next_beat_;
  if (may_look()) earliest = std::min(earliest, next_look_);
  if (broker_ == Broker::down) earliest = std::min(earliest, next_connect_);
  if (broker_ == Broker::connecting) {
    earliest = std::min(earliest, connecting_since_ + options_.publish_timeout);
  }
  if (broker_ == Broker::connected) earliest = std::min(earliest, probe_limit_);
  for (const auto& [partition, lane] : lanes_) earliest = std::min(earliest, lane.deadline());
  return earliest;
}

void Worker::on_answer(const Answer& answer) {
  if (answer.session != last_session_) return;
  if (answer.kind == Answer::Kind::connected) {
    if (broker_ != Broker::connecting) return;
    broker_ = Broker::connected;
    core_.session = last_session_;
    // Only workers with partitions can tell whether the streams are right.
    if (owned_partitions() == 0) recover();
    return;
  }
  if (answer.kind == Answer::Kind::disconnected) return drop_session(answer.detail, false);
  if (answer.kind == Answer::Kind::misconfigured && answer.request == 0) {
    return drop_session(answer.detail, true);
  }
  if (broker_ != Broker::connected) return;
  // Any answer proves that the server is alive.
  probe_limit_ = never;
  has_heard_ = true;
  if (answer.kind == Answer::Kind::alive) return;
  const bool works =
      answer.kind != Answer::Kind::misconfigured && answer.kind != Answer::Kind::unknown;
  if (works) recover();
  FencedLane* const lane = find_lane(Core::partition_of(answer.request));
  if (lane == nullptr) return;
  if (answer.kind != Answer::Kind::unknown) {
    lane->hear();
    is_distrustful_ = false;
  }
  lane->on_answer(answer);
}

void Worker::recover() {
  if (!trouble_.empty()) {
    core_.report(Incident::Kind::broker_back, {}, {}, "the broker answers again");
  }
  trouble_.clear();
  misconfigured_ = false;
}

// --- membership and leases

void Worker::beat() {
  next_beat_ = core_.now() + options_.lease_renew;
  judge_broker();
  try {
    core_.counts.purged_workers +=
        core_.store.heartbeat(core_.worker, options_.heartbeat_ttl, {broker_status(), cut_off_});
    ++core_.counts.heartbeats;
    has_name_ = true;
  } catch (const SchemaMismatch&) {
    throw;
  } catch (const UsageError&) {
    has_name_ = false;
    throw;
  } catch (const Error& e) {
    // Sooner than usual, so that the lease doesn't run out over a busy database.
    next_beat_ = core_.now() + options_.lease_renew / 8;
    core_.report_trouble({}, e);
  }
  for (auto& [partition, lane] : lanes_) lane.renew();
}

bool Worker::is_served() const {
  if (broker_ != Broker::connected || !has_heard_) return false;
  if (owned_partitions() == 0) return !is_distrustful_;
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& entry) {
    return entry.second.is_owned() && !entry.second.is_unanswered();
  });
}

void Worker::watch_service() {
  const bool is_served = this->is_served();
  if (std::exchange(was_served_, is_served) != is_served) since_ = core_.now();
}

void Worker::judge_broker() {
  watch_service();
  const std::chrono::microseconds patience =
      was_served_ ? options_.lease_renew : options_.lease_ttl;
  // A server may accept connections and answer nothing.
  if (broker_ == Broker::connected && !has_heard_) core_.session_doubted = true;
  if (is_distrustful_) ask_for_service();
  if (cut_off_ != was_served_ || core_.now() < since_ + patience) return;
  cut_off_ = !was_served_;
  if (!cut_off_ || broker_ != Broker::connected) return;
  // Another server may reach what this one can't. A worker that has had no partition has nothing to
  // ask for.
  is_distrustful_ = core_.fence != Fence::none && !lanes_.empty();
  drop_session("the server answers for no partition", false);
}

void Worker::ask_for_service() {
  if (broker_ != Broker::connected || owned_partitions() > 0 || lanes_.empty()) return;
  const PartitionId partition = lanes_.begin()->first;
  // Beyond all messages, so that none is read.
  constexpr std::uint64_t from = INT64_MAX;
  core_.publisher.read_back(core_.name_request(partition), partition, from);
  core_.publisher.flush();
}

void Worker::look() {
  next_look_ = core_.now() + options_.idle_backoff;
  Overview overview;
  try {
    overview = core_.store.look();
  } catch (const SchemaMismatch&) {
    throw;
  } catch (const Error& e) {
    core_.report_trouble({}, e);
    return;
  }
  watch_membership(overview);
  hand_over_unneeded(overview);
  take_free(overview);
  look_for_lost(overview);
  retry(overview);
  hand_over_surplus();
}

void Worker::hand_over_unneeded(const Overview& overview) {
  // Drained partitions of older generations: nothing is ever enqueued there again.
  for (const Overview::Partition& partition : overview.partitions) {
    if (partition.is_needed) continue;
    if (FencedLane* const held = find_lane(partition.id)) held->drain();
  }
}

void Worker::watch_membership(const Overview& overview) {
  // A worker that let a lease run out counts as dead, whatever its heartbeat says. A lease that
  // nobody will take over proves nothing: its owner may have failed to release it.
  std::vector<std::string> members;
  for (const std::string& worker : overview.workers) {
    const bool lapsed = std::any_of(
        overview.partitions.begin(), overview.partitions.end(), [&](const Overview::Partition& p) {
          return p.is_expired && p.is_needed && !p.is_stopped && p.owner == worker;
        });
    if (!lapsed && worker != core_.worker) members.push_back(worker);
  }
  members.emplace_back(core_.worker);
  std::sort(members.begin(), members.end());
  leave_to_connected(overview, members);
  if (members != members_) {
    members_ = std::move(members);
    members_since_ = core_.now();
  }
  active_workers_ = members_.size();
  needed_ = static_cast<std::size_t>(
      std::count_if(overview.partitions.begin(), overview.partitions.end(),
                    [](const Overview::Partition& p) { return p.is_needed && !p.is_stopped; }));
  const bool is_member = std::binary_search(members_.begin(), members_.end(), core_.worker);
  share_ = is_member ? share_of(core_.worker, members_, needed_) : 0;
}

void Worker::leave_to_connected(const Overview& overview, std::vector<std::string>& members) const {
  std::vector<std::string> connected;
  for (const std::string& member : members) {
    const bool is_cut_off =
        member == core_.worker
            ? cut_off_
            : std::binary_search(overview.cut_off.begin(), overview.cut_off.end(), member);
    if (!is_cut_off) connected.push_back(member);
  }
  if (!connected.empty()) members = std::move(connected);
}

void Worker::take_free(const Overview& overview) {
  std::size_t owned = owned_partitions();
  const std::size_t count = overview.partitions.size();
  // Workers that look at the same time start with different partitions.
  const std::size_t begin = count == 0 ? 0 : std::hash<std::string_view>{}(core_.worker) % count;
  for (std::size_t i = 0; i < count && owned < share_; ++i) {
    const Overview::Partition& partition = overview.partitions[(begin + i) % count];
    if (!partition.is_free || partition.is_stopped || !partition.is_needed) continue;
    if (lane(partition.id).is_owned()) continue;
    if (lane(partition.id).acquire()) ++owned;
  }
}

void Worker::look_for_lost(const Overview& overview) {
  if (core_.session == 0) return;
  for (const Overview::Partition& partition : overview.partitions) {
    if (partition.is_lost && partition.is_free) lane(partition.id).look_for_lost();
  }
}

void Worker::retry(const Overview& overview) {
  for (const Overview::Partition& partition : overview.partitions) {
    FencedLane* const held = partition.is_to_retry ? find_lane(partition.id) : nullptr;
    if (held != nullptr) held->retry();
  }
}

void Worker::hand_over_surplus() {
  // Only for lasting members: a worker that comes and goes must not move partitions around.
  if (core_.now() < members_since_ + options_.lease_renew) return;
  std::size_t owned = owned_partitions();
  for (auto it = lanes_.rbegin(); it != lanes_.rend() && owned > share_; ++it) {
    if (!it->second.is_kept()) continue;
    it->second.drain();
    --owned;
  }
}

void Worker::hand_over_drained() {
  bool is_done = stopping_;
  for (auto& [partition, lane] : lanes_) {
    if (lane.is_draining() && lane.is_idle()) lane.release();
    is_done = is_done && !lane.is_owned();
  }
  if (!is_done) return;
  core_.store.leave(core_.worker);
  core_.publisher.disconnect();
  stopped_ = true;
}

std::size_t Worker::owned_partitions() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      lanes_.begin(), lanes_.end(), [](const auto& entry) { return entry.second.is_kept(); }));
}

bool Worker::is_idle() const noexcept {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& entry) { return entry.second.is_idle(); });
}

FencedLane* Worker::find_lane(PartitionId partition) noexcept {
  const auto found = lanes_.find(partition);
  return found == lanes_.end() ? nullptr : &found->second;
}

// --- the session

void Worker::connect() {
  broker_ = Broker::connecting;
  connecting_since_ = core_.now();
  core_.session_failed = core_.session_doubted = has_heard_ = false;
  probe_limit_ = never;
  try {
    core_.publisher.connect(++last_session_, answers_);
  } catch (const Error& e) {
    drop_session(e.what(), false);
  }
}

void Worker::probe() {
  if (broker_ != Broker::connected) return;
  const Steady now = core_.now();
  if (now >= probe_limit_) return drop_session("the server doesn't answer", false);
  if (!std::exchange(core_.session_doubted, false) || probe_limit_ != never) return;
  probe_limit_ = now + options_.publish_timeout;
  core_.publisher.probe(core_.name_request({}));
}

void Worker::drop_session(std::string why, bool misconfigured) {
  const bool was_connected = broker_ == Broker::connected;
  broker_ = Broker::down;
  watch_service();
  core_.session = 0;
  core_.session_failed = core_.session_doubted = false;
  core_.publisher.disconnect();
  ++last_session_;
  for (auto& [partition, lane] : lanes_) lane.on_session_lost();
  const Steady now = core_.now();
  // Success in a session doesn't count if the session ended as soon as the one before.
  if (was_connected && now >= lasts_from_) failures_ = 0;
  ++failures_;
  // The first time, an open session that ends is replaced at once.
  const int waits = was_connected && !misconfigured ? failures_ - 1 : failures_;
  const std::chrono::microseconds most =
      was_connected || misconfigured ? max_probe_interval : max_connect_interval;
  follow::Backoff backoff = backoff_of(options_);
  backoff.most = std::clamp(most, backoff.first, backoff.most);
  const auto wait = waits == 0 ? 0us : backoff.after(waits, core_.random);
  next_connect_ = now + wait;
  lasts_from_ = next_connect_ + wait + options_.publish_timeout;
  if (trouble_ != why || misconfigured_ != misconfigured) {
    core_.report(misconfigured ? Incident::Kind::misconfigured : Incident::Kind::broker_down, {},
                 {}, why);
  }
  trouble_ = std::move(why);
  misconfigured_ = misconfigured;
}

BrokerStatus Worker::broker_status() const {
  if (misconfigured_) return {BrokerState::misconfigured, trouble_};
  for (const auto& [partition, lane] : lanes_) {
    if (!lane.misfit().empty()) return {BrokerState::misconfigured, lane.misfit()};
  }
  if (broker_ == Broker::connected && cut_off_ && !was_served_) {
    return {BrokerState::down, "no answer"};
  }
  if (broker_ == Broker::connected) return {BrokerState::connected};
  if (trouble_.empty()) return {BrokerState::connecting};
  return {BrokerState::down, trouble_};
}

}  // namespace stela::relay
