#include "chaos/orchestra.hpp"

#include "chaos/shop.hpp"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

namespace stela::chaos {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// What waits when the faults end gets less within this time, however slow the machine is.
constexpr auto drain_patience = 90s;
/// With the default options a dead process's partitions come back after a quarter of a minute.
constexpr auto longer_with_defaults = 90s;
/// A mutant may never drain: that needn't be waited for.
constexpr auto mutant_drain_limit = 15s;
/// About what a phase takes: the faults end so much sooner.
constexpr auto phase_time = 10s;

/// What a mutant is most likely to stumble over: short runs must find it.
std::string_view favourite_of(mutants::Mutant mutant) {
  switch (mutant) {
    case mutants::Mutant::mark_before_ack:
    case mutants::Mutant::no_read_back_at_acquisition:
      return "kill-relay";
    case mutants::Mutant::dedup_only:
      return "late-bytes";
    case mutants::Mutant::skip_failed_row:
      return "fill-broker";
    default:
      return {};
  }
}

/// Each as often as it has weight.
std::vector<Fault> weighed(const Settings& settings, const std::optional<Phase>& phase) {
  const bool needs_standby = phase && phase->play == fail_over;
  std::vector<Fault> weighed;
  for (const Fault& fault : all_faults()) {
    if (!settings.has(fault.kind) || (fault.is_in && !fault.is_in(settings))) continue;
    if (needs_standby && fault.kind == "promote") continue;
    weighed.insert(weighed.end(), static_cast<std::size_t>(fault.weight), fault);
  }
  return weighed;
}

/// The seed's choice among those that make sense.
std::optional<Phase> phase_of(const Settings& settings) {
  std::vector<Phase> phases = all_phases();
  std::erase_if(phases, [&](const Phase& phase) {
    return !settings.has(phase.kind) || !phase.is_in(settings);
  });
  // After a phase everything must be at the broker.
  if (settings.deletes) return std::nullopt;
  if (phases.empty() || settings.mutant != mutants::Mutant::none) return std::nullopt;
  return phases[settings.seed % phases.size()];
}

}  // namespace

std::vector<Fault> all_faults() {
  std::vector<Fault> all;
  for (auto* const some : {process_faults, network_faults, broker_faults, database_faults,
                           postgres_faults, clock_faults}) {
    const std::vector<Fault> more = some();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<Phase> all_phases() {
  // Without a fence nothing stops a database that is behind its broker.
  const auto has_copies = [](const Settings& settings) {
    return !settings.is_on_postgres() && settings.fence != Fence::none;
  };
  const auto has_standby = [](const Settings& settings) {
    return settings.is_on_postgres() && settings.fence != Fence::none;
  };
  return {{"cloned-database", true, has_copies, clone_database},
          {"restored-database", true, has_copies, restore_database},
          {"emptied-broker", false, [](const Settings&) { return true; }, empty_broker},
          {"full-broker-disk", false,
           [](const Settings& settings) { return settings.servers == 1; }, fill_broker_disk},
          {"asynchronous-failover", false, has_standby, fail_over}};
}

Orchestra::Orchestra(const Settings& settings)
    : settings_{settings},
      phase_{phase_of(settings)},
      world_{settings, phase_ && phase_->play == fill_broker_disk},
      faults_{weighed(settings, phase_)} {}

bool Orchestra::play() {
  const auto time = std::chrono::seconds{settings_.seconds} - (phase_ ? phase_time : 0s);
  const auto end = steady_clock::now() + time;
  if (settings_.resized > 0) world_.agenda.later(time / 2, [this] { resize(world_); });
  if (phase_ && phase_->is_of_copies) {
    world_.agenda.later(time * (3 + world_.random() % 6) / 10, [this] { back_up(world_); });
  }
  world_.pass(1s);
  while (steady_clock::now() < end) {
    strike();
    world_.pass(world_.between(settings_.fault_ms / 4, settings_.fault_ms * 7 / 4));
  }
  heal();
  const bool drained = drain();
  for (const char* const role : {"relay", "consume", "remind"})
    world_.members.stop(role, world_.problems);
  return drained;
}

void Orchestra::play_phase() {
  if (phase_) phase_->play(world_);
}

void Orchestra::strike() {
  if (faults_.empty()) return;
  const auto drawn =
      faults_.begin() + static_cast<std::ptrdiff_t>(world_.random() % faults_.size());
  const auto favourite = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    return fault.kind == favourite_of(settings_.mutant);
  });
  const bool takes_it = favourite != faults_.end() && !world_.once_in(4);
  (takes_it ? favourite : drawn)->strike(world_);
}

void Orchestra::heal() {
  // What was going to be undone is undone now.
  world_.agenda.run_all();
  if (world_.server) world_.server->heal();
  world_.proxy.heal();
  world_.own_line.heal();
  world_.pace_lines();
  for (Member& member : world_.members.all()) {
    if (member.child) member.child->signal(SIGCONT);
  }
  world_.members.stop("append", world_.problems);
}

bool Orchestra::drain() {
  const bool is_mutant = settings_.mutant != mutants::Mutant::none;
  const std::chrono::seconds patience =
      is_mutant ? mutant_drain_limit
                : drain_patience + (settings_.defaults ? longer_with_defaults : 0s);
  if (!world_.falls_to_zero([this] { return waiting(); }, patience)) return false;
  // What dead connections still hold may arrive.
  world_.pass(1'500ms);
  return true;
}

/// Messages that aren't published yet, and those that haven't had their effect.
std::int64_t Orchestra::waiting() const {
  const std::int64_t published = shop_number(
      settings_, "SELECT count(*) FROM events JOIN event_kinds USING (kind) WHERE publishes");
  return shop_number(settings_, "SELECT count(*) FROM outbox_messages") + published -
         effect_number(settings_, "SELECT count(*) FROM effects") - deleted_unhandled() +
         (settings_.has_deadlines() ? unreminded() : 0);
}

/// Tickets whose deadline hasn't passed yet.
std::int64_t Orchestra::unreminded() const {
  return shop_number(settings_,
                     "SELECT count(*) FILTER (WHERE type = 'ticket.issued') - "
                     "count(*) FILTER (WHERE type = 'ticket.reminded') "
                     "FROM events JOIN event_kinds USING (kind)");
}

/// Messages that were deleted before they had their effect.
std::int64_t Orchestra::deleted_unhandled() const {
  if (world_.deletions.empty()) return 0;
  std::string ids;
  for (const Deletion& each : world_.deletions) {
    ids += (ids.empty() ? "'" : ",'") + each.event_id + '\'';
  }
  return static_cast<std::int64_t>(world_.deletions.size()) -
         effect_number(settings_, "SELECT count(*) FROM effects WHERE id IN (" + ids + ")");
}

}  // namespace stela::chaos
