// A partition whose broker takes what comes: order is kept per stream, by waiting.
#pragma once

#include "byte_window.hpp"
#include "relay/lane.hpp"

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace stela::relay {

/// Publishes messages of different streams side by side, and those of one stream one after the
/// other. A message whose fate is unknown is sent again under the same id: the broker's window or
/// the consumer's inbox drops the second.
class OpenLane final : public Lane {
 public:
  using Lane::Lane;

  bool is_idle() const noexcept override { return requests_.empty() && stored_ == 0; }
  void mark_if_due() override;
  void on_time() override;
  Steady deadline() const override;
  void on_answer(const Answer& answer) override;
  void on_session() override {}
  void on_session_lost() override;

 private:
  enum class State : std::uint8_t { waiting, in_flight, stored };

  struct Entry {
    /// Its event is null while it has let go of it.
    PendingMessage message = {};
    /// Keeps the event alive.
    std::shared_ptr<const PendingBatch> batch = {};
    State state = State::waiting;
    std::uint64_t broker_sequence = 0;
    Steady sent = {};
    /// The next one of the same stream.
    Entry* behind = nullptr;

    /// Of its payload, while it has it.
    std::int64_t bytes() const noexcept;
  };

  /// The messages of one stream that were fetched: the first is in flight, ready or held.
  struct Stream {
    Entry* first = nullptr;
    Entry* last = nullptr;
    /// The first waits until then.
    Steady held_until = {};
  };

  void begin(const Standing&) override { forget(); }
  void forget() override;
  void send(int& budget) override;

  bool fetch(int budget);
  /// Reads the payload of a message that had let go of it.
  bool read_again();
  bool has_room() const noexcept;
  /// Has room, or makes it by marking what was stored.
  bool make_room();
  /// Drops the payload of a message that has to wait: others need the room.
  void let_go(Entry& entry) noexcept;
  void let_go_of_all();
  /// All that may go, in order.
  void queue_all();
  /// Where it waits to go, as the first of its stream.
  std::deque<Entry*>& queue_of(const Entry& entry) noexcept;
  Advance sort_out(const std::shared_ptr<const PendingBatch>& batch, std::list<Entry>& fetched);
  void enqueue(Entry& entry);
  void publish(Entry& entry);

  void on_stored(Entry& entry, const Answer& answer);
  void on_rejected(Entry& entry, const std::string& error);
  /// An answer didn't come: what it was for is sent again.
  void miss(const std::string& what);
  void give_up(Entry& entry, ParkedMessage::Reason reason, const std::string& error);
  /// The stream's next message may go.
  void shift(Entry& entry);

  /// What became of it is known, or will never be.
  void land(Entry& entry) noexcept;
  template <class Condition>
  void remove_if(const Condition& is_done);

  Advance progress() const;
  bool advance(const Advance& advance, bool durable);

  /// Everything that was fetched and isn't marked yet, in order.
  std::list<Entry> entries_;
  std::unordered_map<std::int64_t, Stream> streams_;
  /// By request, that is in the order in which they were sent.
  std::map<std::uint64_t, Entry*> requests_;
  /// First of their streams, and free to go; without their payloads in `unread_`.
  std::deque<Entry*> ready_;
  std::deque<Entry*> unread_;
  /// Streams whose first message waits for its time.
  std::vector<std::int64_t> held_;
  Cursor cursor_;
  int stored_ = 0;
  /// Answers that didn't come, since the last message was stored.
  int missed_ = 0;
  /// Of the payloads in `entries_`, and what of it is in flight.
  std::int64_t bytes_ = 0;
  std::int64_t bytes_in_flight_ = 0;
  ByteWindow byte_window_;
};

}  // namespace stela::relay
