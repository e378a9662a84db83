// Messages that were taken over from the broker and wait in the inbox for their turn.
#pragma once

#include "database/database.hpp"

#include <stela/eventstore/store.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stela::nats {

struct HeldMessage {
  std::int64_t number = 0;
  std::string source = {};
  std::string stream = {};
  StreamVersion version = {};
  /// What was published before it in its stream.
  StreamVersion previous = {};
  /// 16 bytes.
  std::string event_id = {};
  std::uint64_t broker_sequence = 0;
  std::int64_t size = 0;
  /// How often it was taken up, this time included, since it was known what became of that.
  std::int64_t claims = 0;
  /// Nobody waits any longer for what is missing before it.
  bool is_released = false;
  bool is_to_skip = false;
};

/// A message that failed and of which nothing is left: neither the broker nor the inbox has it.
struct LostMessage {
  std::string source = {};
  std::string stream = {};
  StreamVersion version = {};
  std::string error = {};
  /// The one after it notes a gap.
  bool is_noted = false;
};

/// What the broker says of messages that are on their way to consumers of this name.
struct OnTheirWay {
  using Steady = std::chrono::steady_clock::time_point;

  /// None up to this place in the stream.
  std::uint64_t settled_through = 0;
  /// None that was in another of their streams at this time.
  Steady others_settled_at = Steady::max();
  /// Consumers of those get on with them.
  bool are_others_moving = false;
};

/// How held messages are taken up.
struct Claiming {
  std::string_view broker_stream = {};
  std::int64_t most = 1;
  std::int64_t most_bytes = 0;
  /// The consumer gets every message of each stream, and got all that was ever published.
  bool is_whole = false;
  bool has_whole_history = false;
  /// Nobody else takes up the same messages for so long.
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds patience{0};
  /// Unset: nobody has asked.
  std::optional<OnTheirWay> on_their_way = {};
};

struct Claimed {
  std::vector<HeldMessage> messages = {};
  std::vector<LostMessage> lost = {};
  /// One waits for something that is missing, and that only isn't on its way if the broker says so.
  bool wants_to_ask = false;
};

/// What waits is looked at so often before its patience is over: each process must see it wait.
inline constexpr std::chrono::milliseconds look_meanwhile{5'000};

/// The held messages of one consumer. Everything with a connection belongs into the transaction
/// that is open on it.
/// Threads: one at a time.
class HeldStore {
 public:
  HeldStore(Store& store, std::int64_t consumer) : store_{store}, consumer_{consumer} {}

  /// When the next message of `broker_stream` is due; unset: nothing is held.
  std::optional<Timestamp> next_due(std::string_view broker_stream) const;
  /// How many streams have messages that are held.
  std::int64_t count_streams() const;

  /// Takes up the first messages of streams that are due, and what follows them, so that nobody
  /// else does for a while.
  Claimed claim(const Claiming& rules);
  /// Nothing became of what was claimed: it is due again at `due`.
  void unclaim(const std::vector<std::int64_t>& messages, Timestamp due);

  /// From now on this process sees that the event waits for what is missing before it. True if it
  /// didn't before.
  bool watch(std::string_view event_id);
  /// Nothing is due later than `longest` from now: what is was noted with a clock that was ahead.
  void bring_forward(std::string_view broker_stream, std::chrono::milliseconds longest);

 private:
  using Steady = std::chrono::steady_clock::time_point;
  struct Head;
  Steady steady_now() const;
  /// Since when this process has seen a message wait, when it looked last, and how long it has
  /// waited by then, as far as any process knows.
  struct Watch {
    Steady since;
    Steady looked;
    std::chrono::milliseconds waited{0};
  };
  Watch look_at(database::Connection& connection, const HeldMessage& message, const Claiming& rules,
                Timestamp now);
  std::vector<Head> due_heads(database::Connection& connection, const Claiming& rules,
                              Timestamp now) const;
  /// False if it has to wait, until a time that is noted.
  bool is_ready(database::Connection& connection, const Head& head, const Claiming& rules,
                Timestamp now, Claimed& claimed);
  std::optional<Timestamp> waits_until(database::Connection& connection, const HeldMessage& message,
                                       std::chrono::milliseconds patience, const Claiming& rules,
                                       Timestamp now);
  void look_behind(database::Connection& connection, const HeldMessage& first,
                   const Claiming& rules, Timestamp now);
  std::vector<HeldMessage> held_behind(database::Connection& connection, const HeldMessage& first,
                                       const Claiming& rules, std::int64_t most) const;
  void drop_failures(database::Connection& connection, const Head& head, Claimed& claimed) const;
  void claim_run(database::Connection& connection, const Head& head, const Claiming& rules,
                 std::int64_t most, Timestamp now, Claimed& claimed);
  bool claim_one(database::Connection& connection, HeldMessage message, const Claiming& rules,
                 Timestamp now, Claimed& claimed) const;

  Store& store_;
  std::int64_t consumer_;
  /// By event. Wall clocks jump, and a message is declared missing once: steady time says how much
  /// of the patience is over.
  std::unordered_map<std::string, Watch> watched_;
};

}  // namespace stela::nats
