// A partition whose order the broker keeps: each message names the one that it must follow.
#pragma once

#include "byte_window.hpp"
#include "relay/fifo.hpp"
#include "relay/lane.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace stela::relay {

/// Publishes a chain of messages, and stops at the first answer that isn't the acknowledgement of
/// the next one. Then it waits for what else is in flight, reads back what stands at the broker,
/// marks that, and goes on behind it.
/// With Fence::none there is nothing to compare with: it marks what was acknowledged, and sends the
/// rest again under the same ids. So of each stream one message is in flight at a time.
class FencedLane final : public Lane {
 public:
  using Lane::Lane;

  bool is_idle() const noexcept override { return flight_.empty() && state_ != State::reading; }
  void mark_if_due() override;
  void on_time() override;
  Steady deadline() const override;
  void on_answer(const Answer& answer) override;
  void on_session() override;
  void on_session_lost() override;

 private:
  enum class State : std::uint8_t {
    /// Doesn't know where the partition stands, and hasn't asked.
    doubtful,
    /// Waits for the answer to a read-back.
    reading,
    /// Knows where the partition stands at the broker.
    ready,
    /// Something wasn't acknowledged: waits for the answers to the rest.
    settling,
  };

  struct InFlight {
    std::uint64_t request = 0;
    PendingMessage message = {};
    EventId event_id = {};
    /// Where it will stand at the broker; where the subject is the fence, no earlier than there.
    std::uint64_t position = 0;
    std::int64_t bytes = 0;
    Steady sent = {};
    bool answered = false;
    bool stored = false;
  };

  /// The first message of the chain that wasn't stored, and what the broker said.
  struct Failure {
    PendingMessage message = {};
    Answer::Kind kind = Answer::Kind::unknown;
    std::string detail = {};
    std::uint64_t position = 0;
    /// The partition has waited since: no need to wait for this, too.
    bool has_waited = false;
  };

  void begin(const Standing& standing) override;
  void forget() override;
  void send(int& budget) override;

  bool is_fenced() const noexcept { return core_.fence != Fence::none; }

  // Publishing.
  std::size_t window() const noexcept;
  relay::BatchLimit wanted(int budget) const;
  /// True if all of them went; the rest waits for the next step.
  bool publish(const PendingBatch& batch, const std::vector<const PendingMessage*>& messages);
  void move_behind(const PendingMessage& message);
  /// Without a fence: cuts the batch before a message whose stream has one in flight.
  void cut(PendingBatch& batch);
  bool is_blocked() const noexcept;
  std::vector<const PendingMessage*> sort_out(const PendingBatch& batch, Advance& advance);
  bool gave_up_killer(const PendingMessage& message);
  bool charge_suspect(const PendingMessage& message);
  void acquit_survived();
  bool note_attempts(const PendingMessage& message, int attempts, std::string error);
  void publish(const PendingMessage& message);
  static void write_message_id(const EventId& id, const PendingMessage& message, std::string& text);

  // Answers.
  void on_stored(InFlight& message, const Answer& answer);
  void on_failure(const InFlight& message, Answer::Kind kind, const std::string& detail);
  void settle();
  /// An answer didn't come: nobody knows where the partition stands. Other lanes go on.
  void miss(const std::string& what);
  InFlight* find(std::uint64_t request) noexcept;
  /// An answer to it didn't come in time. Without a fence its fate is all that isn't known.
  void miss(InFlight& message);
  /// What was stored of the first `count` messages in flight.
  Advance progress(std::size_t count) const;
  /// Without a fence: notes everything that was stored, before what is in flight is forgotten.
  bool mark_stored();
  bool advance(const Advance& advance, bool durable);

  // Doubt, and the way out of it.
  void doubt();
  void add_bytes(std::int64_t bytes) noexcept;
  void ask();
  /// Few enough lanes read back; those that are in trouble leave room for the others.
  bool may_ask() const noexcept;
  void on_read_back(const Answer& answer);
  /// With a shared stream: nothing of the partition is left, and its last message was dropped.
  bool has_aged_out(const Answer& answer) const;
  /// How many of the messages that the partition knew at the broker are gone, at most.
  std::uint64_t lost_before(const Answer& answer) const;
  /// The reason to stop the partition that the answer gives; empty if there is none.
  std::optional<StopReason> contradiction(const Answer& answer) const;
  /// Stops the partition; messages that seem lost are looked for again first.
  void on_contradiction(StopReason reason, const Answer& answer);
  bool accept(const Answer& answer);
  /// Which of the events that the broker has the store doesn't; empty if it has all of them.
  std::string missing_in_store(const Answer& answer, const std::vector<EventId>& ids) const;
  /// Something waits that comes before what was found, and wasn't found.
  bool passes_what_waits(const Answer& answer);
  /// As an operator wants it: marks what is ours, passes over what isn't, goes on behind all of it.
  bool adopt(const Answer& answer);
  /// `lost`, if that bounds what waits to be sent again as lost.
  std::optional<std::uint64_t> most_lost(const Answer& answer, std::uint64_t lost) const;
  void mark_ours(const Answer& answer, const std::vector<EventId>& ids, Advance& advance) const;
  bool is_ours(const FoundMessage& found, const EventId& id) const;
  /// Was marked before the look back began.
  bool was_known(const FoundMessage& found) const noexcept;
  /// From where to look back next; nothing if the answer reaches back far enough.
  std::optional<std::uint64_t> position_before(const Answer& answer,
                                               const std::vector<EventId>& ids);
  void drop_stored_failure(const Answer& answer);
  void wait_with_failure() noexcept;
  void resume(const Answer& answer);
  void act_on(const Failure& failure);
  void give_up(const PendingMessage& message, ParkedMessage::Reason reason, int attempts,
               const std::string& error);

  State state_ = State::doubtful;
  Fifo<InFlight> flight_;
  /// Without a fence: the stream of the message that a batch was cut at, and how many messages the
  /// next one is to have.
  std::optional<std::int64_t> blocked_by_;
  int wanted_ = std::numeric_limits<int>::max();
  /// How many of them, from the first on, are stored.
  std::size_t acknowledged_ = 0;
  Cursor cursor_;
  /// What is marked: the last message, and where it stands at the broker.
  GlobalSequence published_through_ = {};
  std::uint64_t broker_sequence_ = 0;
  std::string broker_id_;
  bool adopted_ = false;
  /// A part of what stands there is marked.
  bool adopting_ = false;
  /// Where the broker has lost what the partition knew, other messages may stand by now, and a
  /// store that was restored doesn't know of them. An adoption looks back for one that it knows.
  struct LookBack {
    GlobalSequence known_through = {};
    /// So many messages further back, each time twice as many; 0: found.
    std::uint64_t step = 0;
  };
  LookBack look_back_;
  /// Since then the broker has said that messages are gone.
  std::optional<Steady> lost_since_;
  /// What was sent last: the next message has to follow it.
  std::uint64_t tail_position_ = 0;
  std::string tail_id_;
  std::string next_id_;
  GlobalSequence tail_ = {};
  /// After an owner's sudden death: how many of the next messages may have been its cause, how many
  /// of them go at a time, and the one that it must have been, if it was one.
  std::int64_t suspects_ = 0;
  std::size_t suspects_window_ = 0;
  GlobalSequence suspect_ = {};
  /// That one as it was before it was charged; unset once the charge is taken back.
  std::optional<PendingMessage> charged_;
  /// What is in flight and not answered.
  std::int64_t bytes_ = 0;
  ByteWindow byte_window_;
  std::uint64_t asked_request_ = 0;
  Steady asked_ = {};
  /// Somebody may have changed the stream since.
  Steady look_again_ = {};
  std::optional<Failure> failure_;
  /// Doubts in a row that brought nothing.
  int fruitless_ = 0;
};

}  // namespace stela::relay
