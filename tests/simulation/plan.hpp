// What a run is made of.
#pragma once

#include "mutants/mutant.hpp"
#include "simulation/world.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace stela::sim {

using mutants::Mutant;

/// Nothing that was sent is on its way for longer than this.
inline constexpr Time latest_of_all = 60 * second;

enum class Fault : std::uint8_t {
  kill,
  pause,
  disconnect,
  broker_down,
  broker_full,
  broker_missing,
  broker_forbids,
  lose_replies,
  late_bytes,
  deaf,
  cut_off,
  slow_network,
  store_busy,
  store_full,
  clock_step,
  join,
  leave,
  resize,
  poison,
  reject,
  retry_parked,
  discard_parked,
  republish,
  replay,
  tail_lost,
  tail_unreadable,
  foreign_writer,
  aged_out,
  stream_out,
  count,
};

std::string_view to_string(Fault fault) noexcept;

/// How the stream of one partition fails, and no other.
enum class Outage : std::uint8_t {
  /// What is sent to it gets lost.
  silent,
  /// It stores what it gets, and nobody hears of it.
  mute,
  /// Messages get lost; a read-back is answered.
  no_quorum,
  /// Messages aren't allowed; a read-back is answered.
  denied,
  /// The server refuses everything: the stream is offline (10118).
  offline,
  /// There is no such stream.
  missing,
  count,
};

std::string_view to_string(Outage outage) noexcept;

/// A fault at a place instead of by chance: at the so-many-th opportunity.
struct ScriptedFault {
  enum class Kind : std::uint8_t {
    // Before and after each call of the store.
    kill,
    pause,
    // At each answer of the broker: it gets lost, or its connection dies and it comes too late.
    lose_reply,
    cut,
    // At each message: the connection dies, and its bytes arrive late, or never.
    late_bytes,
    lost_bytes,
    // At each message: the broker doesn't take it this time.
    refuse,
  };
  std::size_t at = 0;
  Kind kind = Kind::kill;
};

/// Where a scripted fault can strike.
enum class Opportunity : std::uint8_t { call, answer, message };

std::string_view to_string(ScriptedFault::Kind kind) noexcept;

/// A worker's line to the broker, and how soon that answers questions.
struct Line {
  Time round_trip = 0;
  /// Bytes a second, each way; 0 for as many as come.
  std::int64_t bandwidth = 0;
  /// What a question takes. The server answers one after the other, whoever asks.
  Time question = 0;

  Time time_for(std::int64_t bytes) const noexcept {
    return bandwidth == 0 ? 0 : bytes * second / bandwidth;
  }
};

/// What a socket takes before whoever writes to it has to wait.
inline constexpr std::int64_t socket_bytes = 64 * 1024;

/// Everything is drawn from the seed; a test may pin some of it.
struct Plan {
  std::uint64_t seed = 0;
  Mutant mutant = Mutant::none;
  Fence fence = Fence::stream;
  int workers = 4;
  int partitions = 16;
  int streams = 40;
  Time faults_until = 600 * second;
  double appends_per_second = 2.7;
  Line line = {};
  std::int64_t largest_payload = 2;
  /// How many faults may happen; shrinking lowers it.
  std::int64_t most_faults = INT64_MAX;
  /// Faults of a kind that was switched off don't happen; shrinking switches them off.
  std::uint32_t kinds = UINT32_MAX;
  /// The store is restored from an older copy in the end.
  bool restore = false;
  /// Runs on SQLite in memory, with the model store beside it.
  bool sqlite = false;
  bool trace = false;
  /// Nothing goes wrong but single streams: the partitions of the others must get on all the time.
  bool calm = false;

  /// For the exhaustive mode: so many events and nothing else than these faults.
  std::int64_t events = -1;
  std::vector<ScriptedFault> script = {};
  bool is_scripted() const noexcept { return events >= 0; }

  static Plan draw(std::uint64_t seed);
  static Plan draw_calm(std::uint64_t seed);
  /// So many partitions, and streams for each.
  void spread_over(int count);
};

}  // namespace stela::sim
