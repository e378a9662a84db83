// A lane whose order the broker enforces: each message names its predecessor.
#pragma once

#include "relay/chain.hpp"
#include "relay/doubt.hpp"
#include "relay/lane.hpp"
#include "relay/suspicion.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace stela::relay {

/// Connects the chain of messages, the doubt about it and the suspicion after a death with lease,
/// store and publisher. At the first answer that isn't the acknowledgement of the next message, it
/// stops, waits for the other messages in flight, reads back what the broker has, marks that, and
/// continues after it. With Fence::none there is nothing to compare with, so it marks acknowledged
/// messages and sends the rest again under the same ids; only one message of each stream is in
/// flight at a time.
class FencedLane final : public Lane {
 public:
  FencedLane(Core& core, PartitionId partition) noexcept
      : Lane{core, partition}, chain_{core}, doubt_{core} {}

  /// Nothing is in flight or being asked.
  bool is_idle() const noexcept { return chain_.empty() && !doubt_.is_asked(); }
  /// Sends what may be sent, up to `budget` messages, and lowers `budget`.
  void pump(int& budget);
  /// Marks acknowledged messages, unless more of the same batch are about to follow.
  void mark_if_due();
  /// Does what is due by time: timeouts, the end of a back-off.
  void on_time();
  Steady deadline() const;
  /// An operator ended its back-off: it looks at the broker first.
  void retry();

  void on_answer(const Answer& answer);
  /// The fate of messages in flight is unknown.
  void on_session_lost();

 private:
  using Link = Chain::Link;

  /// The first message of the chain that wasn't stored, and the broker's answer.
  struct Failure {
    Link link = {};
    Answer answer = {};
    /// The partition has waited since then, so this failure needs no wait of its own.
    bool has_waited = false;
  };

  void begin(const Standing& standing) override;
  void forget() override;

  bool is_fenced() const noexcept { return core_.fence != Fence::none; }

  // Publishing.
  std::size_t window() const noexcept;
  BatchLimit wanted(int budget) const;
  /// True if all were sent; the rest waits for the next step.
  bool publish(const std::vector<PendingMessage>& messages);
  /// Without a fence: cuts the batch before a message whose stream already has one in flight.
  void cut(PendingBatch& batch);
  bool is_blocked() const noexcept;
  /// Moves unpublishable messages from the batch to the ones to park.
  static void sort_out(PendingBatch& batch, Advance& advance);

  // Answers.
  /// An answer is missing, so the partition's position is unknown. Other lanes continue.
  void miss(const Answer& missing);
  /// Without a fence: marks all stored messages before the chain is cleared.
  bool mark_stored();
  bool advance(const Advance& advance, bool durable);

  // Doubt, and the way out of it: fenced_lane_doubt.cpp.
  void doubt();
  void ask();
  void on_read_back(const Answer& answer);
  void end_look(bool has_end, std::uint64_t holes);
  /// Stops the partition, after looking once more for messages that seem lost.
  void on_contradiction(StopReason reason, const Answer& answer);
  bool accept(std::span<const FoundMessage> messages, const Answer& answer);
  /// True if an earlier pending message is missing among the found ones.
  bool passes_what_waits(std::span<const FoundMessage> messages);
  /// Carries out an adoption: marks our messages, passes over others, and continues after all of
  /// them.
  void adopt(const Answer& answer, const Verdict& verdict);
  /// Marks our messages, in addition to `advance`, so that none of them is sent again.
  bool mark_found(Advance advance, std::span<const FoundMessage> messages,
                  const std::vector<EventId>& ids);
  bool is_ours(const FoundMessage& found, const EventId& id) const;
  bool is_ours(const FoundMessage& found) const { return is_ours(found, ids_of({&found, 1})[0]); }
  std::vector<EventId> ids_of(std::span<const FoundMessage> messages) const;
  void resume(const Answer& answer);

  // Failures and suspects: fenced_lane_failure.cpp.
  bool gave_up_killer(const PendingMessage& message);
  bool charge_suspect(const PendingMessage& message);
  void acquit_survived();
  void on_failure(const Link& link, const Answer& answer);
  /// Adds the exceeded limit, as far as the broker or its stream reports it.
  static void explain(Failure& failure, const Answer& stream);
  void act_on(const Failure& failure);
  void give_up(const PendingMessage& message, ParkedMessage::Reason reason, const Trouble& trouble);

  Chain chain_;
  Doubt doubt_;
  Suspicion suspicion_;
  std::optional<Failure> failure_;
  /// Without a fence: the stream of the message that a batch was cut at, and the size of the next
  /// batch.
  std::optional<std::int64_t> blocked_by_;
  int wanted_ = std::numeric_limits<int>::max();
  /// How many messages may be in flight since one was given up. Near a bad message there may be
  /// more, and everything sent after each would be read and sent again.
  std::size_t after_refusal_ = std::numeric_limits<std::size_t>::max();
  bool adopted_ = false;
  /// A part of the broker's messages is marked.
  bool adopting_ = false;
  /// The broker ended here, before the position: it is asked from here on for missing messages.
  std::optional<std::uint64_t> broker_end_;
};

}  // namespace stela::relay
