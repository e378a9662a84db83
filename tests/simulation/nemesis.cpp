// What goes wrong in a run, and the operators who make it right, or worse.
#include "simulation/node.hpp"
#include "simulation/simulation.hpp"

#include <functional>
#include <iterator>
#include <utility>

namespace stela::sim {

void Simulation::plan_next_fault() {
  if (healing_ || plan_.calm) return;
  world_.after(world_.chance.between(second, 36 * second), [this] {
    if (healing_ || restored_ >= 0) return;
    const auto fault =
        static_cast<Fault>(world_.chance.below(static_cast<std::int64_t>(Fault::count)));
    const bool wanted = (plan_.kinds >> static_cast<std::uint32_t>(fault) & 1) != 0;
    if (wanted && outcome_.faults < plan_.most_faults) {
      ++outcome_.faults;
      world_.mix(static_cast<std::uint64_t>(fault));
      strike(fault);
    }
    plan_next_fault();
  });
}

std::optional<ScriptedFault::Kind> Simulation::scripted(Opportunity opportunity) {
  if (healing_ || truth_.open() == 0) return std::nullopt;
  const std::size_t at = outcome_.opportunities.size();
  outcome_.opportunities.push_back(opportunity);
  for (const ScriptedFault& fault : plan_.script) {
    if (fault.at != at) continue;
    note("scripted: " + std::string{to_string(fault.kind)});
    return fault.kind;
  }
  return std::nullopt;
}

/// A few events and nothing else than the faults that are written down.
void Simulation::follow_script() {
  kill_chance_ = pause_chance_ = 0;
  broker_.faults.latest_bytes = 2 * options_.lease_ttl.count() * ms;
  broker_.on_reply = [this](int worker) {
    const auto fault = scripted(Opportunity::answer);
    if (fault == ScriptedFault::Kind::cut) {
      if (Node* const node = find(worker)) node->publisher.break_connection();
    }
    return fault == ScriptedFault::Kind::lose_reply;
  };
  broker_.on_message = [this](int) -> std::optional<bool> {
    const auto fault = scripted(Opportunity::message);
    if (fault == ScriptedFault::Kind::refuse) broker_.refusals = 1;
    if (!fault || fault == ScriptedFault::Kind::refuse) return std::nullopt;
    return *fault == ScriptedFault::Kind::late_bytes;
  };
  world_.at(2 * second, [this] {
    for (std::int64_t i = 0; i < plan_.events; ++i) append(0, true);
    wake_all();
  });
}

void Simulation::strike(Fault fault) {
  const Time length = world_.chance.between(100 * ms, 20 * second);
  if (plan_.trace) note("fault: " + std::string{to_string(fault)});
  switch (fault) {
    case Fault::kill:
    case Fault::pause:
    case Fault::store_busy:
    case Fault::store_full:
    case Fault::clock_step:
    case Fault::join:
    case Fault::leave:
      return strike_process(fault, length);
    case Fault::resize:
    case Fault::retry_parked:
    case Fault::discard_parked:
    case Fault::republish:
    case Fault::replay:
      return operate(fault, length);
    case Fault::tail_lost:
      return lose_tail();
    case Fault::tail_unreadable:
      return make_next_unreadable();
    case Fault::foreign_writer:
      return let_a_foreigner_write();
    case Fault::aged_out:
      return age_out();
    default:
      return strike_broker(fault, length);
  }
}

/// Without a fence: as many as everybody together may have sent and not marked. What is in flight
/// when a session ends is counted by itself.
void Simulation::allow_duplicates() {
  truth_.allow_duplicates(options_.window * static_cast<std::int64_t>(store_.partitions().size()));
}

void Simulation::strike_process(Fault fault, Time length) {
  Chance& chance = world_.chance;
  const auto later = [&](std::function<void()> undo) { world_.after(length, std::move(undo)); };
  switch (fault) {
    case Fault::kill:
      if (Node* const node = any_node(); node != nullptr && !node->busy) {
        allow_duplicates();
        crash(*node);
      }
      return;
    case Fault::pause:
      pause_chance_ = pause_chance_ > 0 ? pause_chance_ : 0.0005;
      return;
    case Fault::store_busy:
      allow_duplicates();
      store_faults_.busy = 0.1;
      return later([this] { store_faults_.busy = 0; });
    case Fault::store_full:
      allow_duplicates();
      store_faults_.full = 0.3;
      return later([this] { store_faults_.full = 0; });
    case Fault::clock_step:
      allow_duplicates();
      clock_step_ += chance.between(-3600, 3600) * second;
      return note("the clock is set to " + std::to_string(clock_step_ / second) + " s ahead");
    case Fault::join:
      if (nodes_.size() < 8) start_node();
      return;
    default:
      if (static_cast<int>(nodes_.size()) < plan_.workers) return;
      if (Node* const node = any_node(); node != nullptr && !node->busy) {
        note(name_of(node->number) + " is asked to leave");
        node->leaving = true;
        node->worker->stop();
        drive(*node);
      }
  }
}

void Simulation::strike_broker(Fault fault, Time length) {
  Chance& chance = world_.chance;
  const auto later = [&](std::function<void()> undo) { world_.after(length, std::move(undo)); };
  switch (fault) {
    case Fault::disconnect:
      if (Node* const node = any_node()) {
        if (chance.happens(0.5)) return node->publisher.break_at_next();
        node->publisher.break_connection();
      }
      return;
    case Fault::broker_down:
      broker_.go_down();
      return later([this] {
        if (!broker_.is_up()) broker_.come_back();
      });
    case Fault::broker_full:
      broker_.set_full(true);
      return later([this] { broker_.set_full(false); });
    case Fault::broker_missing:
      broker_.set_missing(true);
      return later([this] { broker_.set_missing(false); });
    case Fault::broker_forbids:
      broker_.set_forbidding(true);
      return later([this] { broker_.set_forbidding(false); });
    case Fault::lose_replies:
      broker_.faults.lose_reply = 0.02;
      return later([this] { broker_.faults.lose_reply = 0; });
    case Fault::late_bytes:
      broker_.faults.late_bytes = 0.8;
      return later([this] { broker_.faults.late_bytes = 0; });
    case Fault::deaf:
      if (Node* const node = any_node()) node->publisher.go_deaf();
      return;
    case Fault::cut_off:
      if (Node* const node = any_node()) {
        // Long enough for the others to take over, now and then.
        const Time until = world_.now() + 4 * length;
        broker_.unreachable[node->number] = until;
        node->publisher.break_connection();
      }
      return;
    case Fault::slow_network:
      broker_.faults.slowest = chance.between(10 * ms, 2 * options_.publish_timeout.count() * ms);
      return later([this] { broker_.faults.slowest = 2 * ms; });
    case Fault::stream_out:
      return strike_stream(any_partition(), 3 * length);
    case Fault::poison:
      broker_.too_large.insert(store_.last_sequence() + chance.between(1, 5));
      return;
    default: {
      const std::int64_t sequence = store_.last_sequence() + chance.between(1, 5);
      broker_.rejected.insert(sequence);
      return later([this, sequence] { broker_.rejected.erase(sequence); });
    }
  }
}

void Simulation::operate(Fault fault, Time) {
  Chance& chance = world_.chance;
  switch (fault) {
    case Fault::resize: {
      const int counts[] = {1, 4, 16, 17, plan_.partitions};
      const int count = counts[chance.below(std::ssize(counts))];
      note("resize to " + std::to_string(count));
      return shared_.resize(count);
    }
    case Fault::retry_parked:
      if (const auto parked = store_.any_parked()) {
        note("retry of stream " + std::to_string(parked->first));
        if (chance.happens(0.5)) broker_.too_large.clear();
        shared_.retry(parked->first, parked->second);
      }
      return;
    case Fault::discard_parked:
      if (const auto parked = store_.any_parked()) shared_.discard(parked->second);
      return;
    case Fault::republish: {
      if (store_.last_sequence() == 0) return;
      const GlobalSequence sequence{chance.between(1, store_.last_sequence())};
      shared_.republish({&sequence, 1});
      return;
    }
    default:
      // A projector throws in a replay; what is appended afterwards is published all the same.
      store_.on_failed_replay();
  }
}

}  // namespace stela::sim
