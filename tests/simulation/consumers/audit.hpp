// Whether a consumer keeps its promise, by what its database shows and the writer's list. It knows
// nothing of how the consumer works.
#pragma once

#include "simulation/consumers/broker.hpp"
#include "simulation/consumers/writer.hpp"
#include "support/raw_sqlite.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::sim {

/// Triggers write down what is committed, in order; it is read while nobody else has a turn.
class Audit {
 public:
  struct Subject {
    const Stage& stage;
    Broker& broker;
    const std::vector<WrittenEvent>& events;
    const std::vector<std::unique_ptr<Writer>>& writers;
    /// Of the consumer.
    std::string filter = {};
    int max_attempts = 5;
    Time unknown_version_wait = 0;
    bool trace = false;
  };
  Audit(const std::string& database, const Subject& subject);

  /// Reads what was committed since the last look.
  void look();
  /// A handler failed.
  void note_failure(const std::string& event);
  /// A process died of it.
  void note_death(const std::string& event, const std::string& broker_stream);
  /// A program doesn't know the version of an event.
  void note_unknown(const std::string& event);
  /// A store failed twice while an attempt was counted.
  void note_busy() { ++busy_; }
  /// An operator is about to do so.
  void note_discard(std::int64_t parked) { discarded_.insert(parked); }
  void note_retry(std::int64_t parked);
  void note_move();
  /// Versions stand for several events from now on.
  void note_restore() { has_restored_ = true; }

  /// How often a position has moved.
  std::int64_t moves() const noexcept { return moves_; }
  /// The reader has seen that the stream was made again, if it was.
  bool knows_stream(const std::string& stream) const;
  /// Everything that the streams have is done.
  bool is_done() const;
  std::size_t parked() const noexcept { return parked_.size(); }
  /// A parked message without an event.
  bool is_foreign(std::int64_t parked) const;
  /// What no message of the broker's can bring any more, and isn't done.
  std::set<int> lost() const;
  /// Judges what is left when everybody is at rest.
  void judge();

  const std::string& contradiction() const noexcept { return contradiction_; }
  void contradict(const std::string& what);
  std::uint64_t hash() const noexcept { return hash_; }
  std::map<std::string_view, std::int64_t> met = {};

 private:
  struct Row {
    std::string what;
    std::string a;
    std::string b;
    std::string c;
    std::int64_t numbers[4];
  };
  struct State {
    int effects = 0;
    int failures = 0;
    int deaths = 0;
    /// At its first death, where that was.
    int releases_before = 0;
    /// Operators wanted it to be tried again.
    int retries = 0;
    std::optional<Time> unknown_since = {};
    std::set<std::int64_t> parked = {};
    bool was_alone = false;
    /// Nobody remembers it once an operator has had it handled.
    bool is_of_another_history = false;
    bool is_discarded = false;
    bool is_reported = false;
    /// It was published before the consumer began to read there.
    bool is_early = false;
    /// A later one of its stream came when the broker had it no more, and nothing before it was
    /// met.
    bool has_aged_out = false;
    /// Left the list of parked messages; its effect must have come with that.
    bool is_released = false;
  };
  struct Parked {
    int event = -1;
    bool is_alone = false;
  };
  /// What is known of the reading of one JetStream stream.
  struct Reading {
    bool has_begun = false;
    /// Of a stream that had its first message.
    bool began_at_front = false;
    /// The stream was made again: what it doesn't have may have been lost.
    bool began_anew = false;
    std::int64_t made_at = 0;
    std::uint64_t position = 0;
    std::string owner = {};
    /// Since the position moved: who read was replaced.
    int takeovers = 0;
    /// How often the lease was given back: whoever comes next doesn't know of a message that kills.
    int releases = 0;
  };

  void tell(const Row& row) const;
  void take(const Row& row);
  void take_effect(const Row& row);
  void take_park(const Row& row);
  void take_unpark(std::int64_t number);
  void take_gap(const Row& row);
  void take_move(const Row& row);
  void take_lease(const Row& row);
  void begin(const std::string& stream, Reading& reading);
  void settle();
  void check_predecessors(int event);
  bool may_be_passed(int event) const;
  bool is_resolved(int event) const;
  bool knows_stream_of(int event) const;
  bool has_met_stream_of(int event) const;
  bool may_have_aged_out(int event) const;
  bool is_still_to_come(int event) const;
  bool is_at_broker(int event) const;
  bool is_replaced(int event) const;
  /// Of a version that another event had before its store was restored: nothing tells it from a
  /// copy, or a reader that was moved has forgotten what does.
  bool is_taken_for_copy(int event) const {
    return has_restored_ && (has_moved_ || this->event(event).came_as_copy);
  }
  int find(const std::string& id);
  std::string name(int event) const;
  State& state(int event) { return states_[static_cast<std::size_t>(event)]; }
  const State& state(int event) const { return states_[static_cast<std::size_t>(event)]; }
  const WrittenEvent& event(int number) const {
    return subject_.events[static_cast<std::size_t>(number)];
  }

  const Subject subject_;
  test::RawSqlite database_;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> read_;
  std::int64_t seen_ = 0;
  std::vector<State> states_;
  std::unordered_map<std::string, int> ids_;
  std::map<std::int64_t, Parked> parked_;
  std::set<std::tuple<std::string, std::uint64_t, std::int64_t>> foreign_;
  std::set<std::int64_t> discarded_;
  std::map<std::string, Reading> readings_;
  /// Which process an owner's name stands for.
  std::map<std::string, std::int64_t> owners_;
  std::vector<int> released_;
  /// Effects, and what they came before.
  std::vector<std::pair<int, int>> passed_;
  int busy_ = 0;
  std::int64_t moves_ = 0;
  bool has_restored_ = false;
  bool has_moved_ = false;
  bool began_late_ = false;
  std::string contradiction_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace stela::sim
