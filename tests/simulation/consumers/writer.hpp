// Stores and their relays as a consumer sees them: which messages come to which stream, in which
// order. And the list of all events, by which the consumer is judged.
#pragma once

#include "simulation/consumers/broker.hpp"

#include <stela/framework/stream_id.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stela::sim {

/// What the consumer's program does with an event.
enum class EventKindOf : std::uint8_t { handled, ignored };

struct WrittenEvent {
  int store = 0;
  int stream = 0;
  std::int64_t version = 0;
  std::int64_t sequence = 0;
  /// The event that was published before it in its stream of events, or would have been; -1 for
  /// none.
  int before = -1;
  EventId id = {};
  Time recorded_at = 0;
  int schema = 1;
  EventKindOf kind = EventKindOf::handled;
  /// It was published for the first time: where, and when that message was stored.
  std::string broker_stream = {};
  std::int64_t stored_at = 0;
  /// That message already had the number of a redelivery: the relay had parked the event.
  bool came_as_copy = false;
  /// The relay's operator gave it up.
  bool is_given_up = false;

  bool is_published() const noexcept { return stored_at != 0; }
};

/// One store and its relay.
class Writer {
 public:
  struct Options {
    int number = 0;
    int streams = 4;
    std::string prefix = {};
    bool is_fenced = true;
    int partitions = 1;
    bool trace = false;
  };
  Writer(Stage& stage, Chance& chance, Broker& broker, std::vector<WrittenEvent>& events,
         const Options& options);

  void append(int stream, int schema);
  /// Publishes the next message of a partition that has one. False if there is none.
  bool publish_one();
  bool has_pending() const;
  bool has_parked() const noexcept { return !contents_.parked.empty(); }

  /// The relay parks what stands next of this stream of events; then what comes behind it.
  void park(int stream);
  bool is_parked(int stream) const;
  void retry(int stream);
  void discard_first(int stream);
  /// Of those that were published, beginning with the so-manieth.
  void republish(std::size_t first, std::size_t count);
  std::size_t published() const noexcept { return contents_.published.size(); }
  /// Sends the last ones once more, as a relay without a fence does.
  void repeat(std::size_t count);
  bool is_fenced() const noexcept { return options_.is_fenced; }
  /// Those of its events that the broker hasn't any more.
  void republish_lost(const std::set<int>& lost);
  void resize(int partitions);

  void back_up();
  bool has_backup() const noexcept { return backup_ != nullptr; }
  void restore();

  int streams() const noexcept { return options_.streams; }
  const std::string& store_id() const noexcept { return id_; }
  StreamId name_of(int stream) const;
  /// All streams that it may publish to.
  std::vector<std::string> broker_streams(int most_partitions) const;

 private:
  struct ToSend {
    int event = 0;
    std::int64_t redelivery = 0;
  };
  struct Partition {
    std::deque<ToSend> again = {};
    std::deque<int> pending = {};
    bool is_empty() const noexcept { return again.empty() && pending.empty(); }
  };
  struct Generation {
    std::int64_t number = 1;
    std::int64_t first = 1;
    int partitions = 1;
    std::map<int, Partition> queues = {};
    bool is_drained() const noexcept;
  };
  /// What a backup of the store has.
  struct Contents {
    std::int64_t sequence = 0;
    std::int64_t redelivery = 0;
    std::vector<std::int64_t> versions = {};
    std::vector<int> before = {};
    std::vector<int> published = {};
    std::map<int, std::deque<ToSend>> parked = {};
    std::deque<Generation> generations = {};
  };

  int partition_of(int stream, int partitions) const;
  /// Without a fence all partitions share a stream.
  std::string broker_stream(int partitions, int partition) const;
  void send_again(int event);
  bool send_from(Generation& generation, int partition);
  void send(const Generation& generation, int partition, const ToSend& what);
  SentMessage write(const Generation& generation, const ToSend& what, std::int64_t previous) const;

  Stage& stage_;
  Chance& chance_;
  Broker& broker_;
  std::vector<WrittenEvent>& events_;
  const Options options_;
  std::string id_;
  Contents contents_;
  std::unique_ptr<Contents> backup_;
  /// How far its clock is set back, until the restored store has as many events as before: later
  /// ones couldn't be told from copies.
  Time set_back_ = 0;
  std::int64_t most_ = 0;
  std::map<std::string, std::int64_t> previous_;
};

}  // namespace stela::sim
