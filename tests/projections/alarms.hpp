// Alarms that are set, cleared and ring: all of it stands in the events, so that what timers did
// can be judged by the events alone.
#pragma once

#include <stela/framework.hpp>
#include <stela/projections.hpp>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stela::test {

inline std::int64_t micros(Timestamp time) {
  return time.time_since_epoch().count();
}

struct AlarmSet {
  static constexpr EventType event_type{"alarm.set", 1, local};
  std::int64_t due = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(due));
  }
};
struct AlarmCleared {
  static constexpr EventType event_type{"alarm.cleared", 1, local};
};
struct AlarmRang {
  static constexpr EventType event_type{"alarm.rang", 1, local};
  std::int64_t due = 0;
  /// When its handler was called.
  std::int64_t at = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(due), CEREAL_NVP(at));
  }
};

struct Ring {
  static constexpr TimerType timer_type{"ring", 1};
  std::int64_t due = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(due));
  }
};

class Alarms {
 public:
  static constexpr ProcessType process_type{"alarms"};
  using Events = EventSet<AlarmSet, AlarmCleared>;
  using Timers = TimerSet<Ring>;

  /// `on_ring` is called before an alarm rings, and may throw.
  explicit Alarms(const Clock& clock, std::function<void()> on_ring = {})
      : clock_{&clock}, on_ring_{std::move(on_ring)} {}

  void react(stela::Process& process, const Recorded<AlarmSet>& e) {
    process.set(Ring{e->due}, Timestamp{std::chrono::microseconds{e->due}});
  }
  void react(stela::Process& process, const Recorded<AlarmCleared>&) { process.clear<Ring>(); }
  void due(stela::Process& process, const Ring& timer) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(),
                          AlarmRang{timer.due, micros(clock_->now())});
    if (on_ring_) on_ring_();
  }

 private:
  const Clock* clock_;
  std::function<void()> on_ring_;
};

template <class E>
void append_alarm(EventLog& store, int key, const E& event) {
  retry([&] {
    UnitOfWork unit{store};
    unit.append(StreamId::of("alarm", std::to_string(key)), ExpectedVersion::any(), event);
    unit.commit();
  });
}

/// What the events say of alarms, in order.
class AlarmHistory {
 public:
  /// `checks_order` unless alarms failed and were tried again.
  explicit AlarmHistory(Store& store, bool checks_order = true) : checks_order_{checks_order} {
    EventDecoder<EventSet<AlarmSet, AlarmCleared, AlarmRang>> decoder{store.conventions().codec};
    for (const StoredEvent& event : store.read_all()) {
      if (!decoder.knows(event.kind)) continue;
      decoder.decode(event, [&](const auto& e) { note(event, e); });
    }
  }

  /// Alarms that rang though they weren't set, rang twice, too early, or out of order.
  const std::vector<std::string>& flaws() const noexcept { return flaws_; }
  /// Alarms that are still to ring.
  std::size_t pending() const noexcept { return pending_.size(); }
  int rang() const noexcept { return rang_; }
  /// How much later than they were due, each of them.
  const std::vector<std::int64_t>& late_us() const noexcept { return late_us_; }

 private:
  struct Pending {
    std::int64_t due;
    std::int64_t set_at;
  };

  void note(const StoredEvent& event, const AlarmSet& e) {
    pending_[event.stream.name()] = {e.due, event.sequence.value()};
  }
  void note(const StoredEvent& event, const AlarmCleared&) { pending_.erase(event.stream.name()); }
  void note(const StoredEvent& event, const AlarmRang& e) {
    const auto known = pending_.find(event.stream.name());
    if (known == pending_.end() || known->second.due != e.due) {
      return complain(event, "rang though it wasn't set");
    }
    if (e.at < e.due) complain(event, "rang too early");
    if (checks_order_ && e.due < last_due_ && known->second.set_at < last_rang_at_) {
      complain(event, "rang after one that was due later");
    }
    last_due_ = e.due;
    last_rang_at_ = event.sequence.value();
    late_us_.push_back(e.at - e.due);
    pending_.erase(known);
    ++rang_;
  }
  void complain(const StoredEvent& event, const char* what) {
    flaws_.push_back(event.describe() + ' ' + what);
  }

  const bool checks_order_;
  std::map<std::string, Pending> pending_;
  std::vector<std::string> flaws_;
  std::vector<std::int64_t> late_us_;
  std::int64_t last_due_ = 0;
  std::int64_t last_rang_at_ = 0;
  int rang_ = 0;
};

}  // namespace stela::test
