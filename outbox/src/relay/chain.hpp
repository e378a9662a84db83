// The messages of a partition that are in flight.
#pragma once

#include "byte_window.hpp"
#include "relay/core.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace stela::relay {

/// The last message of a partition at the broker.
struct Position {
  std::uint64_t broker_sequence = 0;
  /// Empty if unknown: an adopted message may come from anybody.
  std::string message_id = {};
  /// The highest event up to this position, including redeliveries.
  GlobalSequence published_through = {};
};

/// Keeps consistent the marked position, the messages in flight after it, each of which follows the
/// one before, how many are acknowledged without a gap, and how many bytes they hold.
class Chain {
 public:
  struct Link {
    std::uint64_t request = 0;
    PendingMessage message = {};
    EventId event_id = {};
    /// Where it will be stored; if the subject is the fence, the earliest such place.
    std::uint64_t position = 0;
    std::int64_t bytes = 0;
    Steady sent = {};
    bool is_answered = false;
    bool is_stored = false;
  };

  explicit Chain(Core& core) noexcept : core_{core} {}

  const Position& position() const noexcept { return position_; }
  void start(Position position);
  /// Forgets messages in flight: the next message follows the position.
  void clear();

  /// Where to read on after the messages already sent.
  const Cursor& cursor() const noexcept { return cursor_; }
  /// The result is valid until the next append.
  OutgoingMessage append(const PendingMessage& message, PartitionId partition);
  /// The next message follows no message, or whichever message is last.
  void follow_nothing() { tail_ = {.published_through = tail_.published_through}; }
  void follow_any() noexcept { tail_.message_id.clear(); }

  bool empty() const noexcept { return links_.empty(); }
  auto begin() const noexcept { return links_.begin(); }
  auto end() const noexcept { return links_.end(); }
  std::size_t unacknowledged() const noexcept { return links_.size() - acknowledged_; }
  std::size_t acknowledged() const noexcept { return acknowledged_; }
  /// Null if all are answered.
  const Link* first_unanswered() const noexcept;
  /// Null if it isn't in flight.
  Link* find(std::uint64_t request) noexcept;

  std::int64_t bytes() const noexcept { return bytes_; }
  std::int64_t room() const noexcept;
  /// An answer is missing: reduce what is in flight.
  void shrink() noexcept { byte_window_.on_missed(); }

  void answer(Link& link) noexcept;
  /// False if it was stored in a wrong place.
  bool store(Link& link, std::uint64_t broker_sequence);

  /// The acknowledged messages, to be marked.
  Advance progress() const { return stored_of_first(acknowledged_); }
  /// All stored messages, to be marked before the chain is cleared.
  Advance all_stored() const { return stored_of_first(links_.size()); }
  /// Removes marked messages, and moves the position.
  void advance(const Advance& advance);

 private:
  void add_bytes(std::int64_t bytes) noexcept;
  Advance stored_of_first(std::size_t count) const;

  Core& core_;
  Position position_;
  Position tail_;
  /// The id of the message before the tail.
  std::string previous_id_;
  Cursor cursor_;
  std::deque<Link> links_;
  std::size_t acknowledged_ = 0;
  /// Bytes of unanswered messages.
  std::int64_t bytes_ = 0;
  ByteWindow byte_window_;
};

}  // namespace stela::relay
