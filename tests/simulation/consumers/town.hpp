// What everybody in a story of consumers shares.
#pragma once

#include "simulation/consumers/audit.hpp"
#include "simulation/consumers/broker.hpp"
#include "simulation/consumers/stage.hpp"
#include "simulation/consumers/writer.hpp"
#include "simulation/story.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/nats/consumer.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sim {

inline constexpr const char* consumer_name = "town";
inline constexpr int max_attempts = 4;
inline constexpr Time lease_ttl = 15 * second;
inline constexpr Time minute = 60 * second;
inline constexpr Time unknown_version_wait = 2 * minute;

/// What a handler does with one event, beside its effect.
struct Mood {
  int failures = 0;
  /// It ends its process so often.
  int deaths = 0;
  bool is_permanent = false;
  /// It runs out of memory so often, which is nobody's fault.
  int shortages = 0;
};

/// Of those who don't die.
class TownClock final : public Clock {
 public:
  explicit TownClock(const Stage& stage) noexcept : stage_{stage} {}
  Timestamp now() const override {
    return Timestamp{std::chrono::microseconds{SimClock::start_of_wall + stage_.now()}};
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::time_point{std::chrono::microseconds{stage_.now() + second}};
  }

 private:
  const Stage& stage_;
};

struct Town {
  explicit Town(const StoryPlan& the_plan)
      : plan{the_plan}, chance{the_plan.seed * 0x9e3779b97f4a7c15 + 11} {}

  std::string file() const { return folder.file("town.db"); }
  void lock() {
    neighbour->run("BEGIN IMMEDIATE");
    is_locked = true;
    meet("locks of another program");
    // The attempt that was counted may not be taken back.
    if (++locks_in_a_row > 1) audit->note_busy();
  }
  void unlock() {
    if (std::exchange(is_locked, false)) neighbour->run("ROLLBACK");
  }
  void meet(std::string_view what) { ++audit->met[what]; }
  void note(const std::string& what) const {
    if (!plan.trace) return;
    std::printf("%9.3f s  %s\n", static_cast<double>(stage.now()) / second, what.c_str());
  }

  const StoryPlan plan;
  Chance chance;
  Stage stage{chance};
  Broker broker{stage};
  std::vector<WrittenEvent> events;
  std::vector<std::unique_ptr<Writer>> writers;
  TownClock clock{stage};
  test::TempDir folder = test::TempDir::in_memory();
  std::unique_ptr<Audit> audit;
  /// Another program, which takes the write lock now and then.
  std::unique_ptr<test::RawSqlite> neighbour;
  bool is_locked = false;
  int locks_in_a_row = 0;
  std::map<std::string, Mood> moods;

  // Of each place where a process may be interrupted.
  double kill = 0;
  double pause = 0;
  /// Of each event: a handler that fails, for a while or for ever.
  double trouble = 0;
  /// Of each transaction: another program has the lock.
  double busy = 0;
  bool resizes = false;
  bool breaks_streams = false;
  bool restores = false;
  bool cuts_lines = false;
  bool has_clerk = false;
  bool has_relay_trouble = false;
  /// When the consumer is started for the first time.
  Time opens_at = 0;
  nats::OnFailure on_failure = nats::OnFailure::park_stream;
  nats::ConsumerStart start = nats::ConsumerStart::first;
  /// The consumer's; empty for none.
  std::string filter = {};
  /// Programs that are started know events up to here.
  int newest_schema = 1;
  /// Nothing goes wrong any more, and nobody interferes.
  bool is_healed = false;
  bool is_over = false;
  std::int64_t bodies = 0;
};

}  // namespace stela::sim
