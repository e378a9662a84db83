// What one run of chaos is made of: everything is drawn from its seed.
#pragma once

#include "mutants/mutant.hpp"

#include <stela/outbox/publisher.hpp>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::chaos {

/// Of the database: on SQLite the consumers have a file of their own, on PostgreSQL all share one
/// store.
enum class Engine : std::uint8_t { sqlite, postgres };

struct Settings {
  Engine engine = Engine::sqlite;
  std::uint64_t seed = 1;
  int seconds = 120;
  Fence fence = Fence::stream;
  int partitions = 1;
  /// What the outbox is resized to in the middle; 0: it isn't.
  int resized = 0;
  bool relaxed = false;
  /// Whether the database is on a small disk, if every kind of fault is wanted.
  bool small_disk = false;
  int batch_size = 100;
  /// Relays and consumers with the options that users get who set none.
  bool defaults = false;
  /// The lines to the broker, in each direction, when nothing is done to them: half a round trip,
  /// and how many bytes pass in a second; 0: any number.
  int latency_ms = 0;
  int line_bytes = 0;
  /// Some events have payloads of so many bytes; 0: all are small.
  int large_size = 0;
  /// One nats-server, or a cluster of three with as many copies of each stream.
  int servers = 1;
  /// Operators delete messages at the broker.
  bool deletes = false;
  /// Between two faults, on average.
  int fault_ms = 400;
  mutants::Mutant mutant = mutants::Mutant::none;
  /// The kinds of faults; empty: all.
  std::set<std::string, std::less<>> kinds = {};
  std::string folder = {};

  static Settings draw(std::uint64_t seed, int seconds);

  /// The kinds, as the option --kinds has them.
  std::string kinds_option() const;
  /// The longest pause of an appender. Those behind it must keep up, in a long run over the bad
  /// lines too: what is left when the faults end has to drain. On PostgreSQL timers are slowest.
  std::chrono::milliseconds append_pause() const {
    constexpr int long_run = 300;
    const bool is_long = seconds > long_run;
    const bool is_slow = is_on_postgres() && has_deadlines();
    if (is_slow) return std::chrono::milliseconds{is_long ? 1'000 : 144};
    return std::chrono::milliseconds{is_long ? 250 : 12};
  }
  bool has(std::string_view kind) const { return kinds.empty() || kinds.contains(kind); }
  /// Whether there is a process with deadlines.
  bool has_deadlines() const { return mutant == mutants::Mutant::none && has("kill-reminder"); }
  bool has_by_name(std::string_view kind) const { return kinds.contains(kind); }
  /// A folder of its own, which may be on a small disk.
  std::string disk() const { return folder + "/disk"; }
  std::string database() const { return disk() + "/shop.db"; }
  /// A copy of it, from the middle of the run.
  std::string backup() const { return folder + "/backup.db"; }
  /// How far the wall clock of the process with this number is ahead.
  std::string clock_of(int number) const { return folder + "/clock." + std::to_string(number); }
  /// On PostgreSQL: the ways to the server, one a line.
  std::string urls() const { return folder + "/urls"; }
  bool is_on_postgres() const noexcept { return engine == Engine::postgres; }
  /// Of so many machines there are processes, on PostgreSQL; their clocks differ by minutes.
  static constexpr int machines = 2;
  std::chrono::minutes skew_of(int number) const {
    if (!is_on_postgres()) return std::chrono::minutes{0};
    return std::chrono::minutes{number % machines == 0 ? 17 : -23};
  }
  /// On SQLite.
  std::string effects() const { return folder + "/effects.db"; }
  /// The JetStream streams that there are at any time.
  std::vector<std::string> streams() const;
};

}  // namespace stela::chaos
