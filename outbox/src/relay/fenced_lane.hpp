// A partition whose order the broker keeps: each message names the one that it must follow.
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

/// Ties the chain of messages, the doubt about it and the suspicion after a death to lease, store
/// and publisher. It stops at the first answer that isn't the acknowledgement of the next message.
/// Then it waits for what else is in flight, reads back what stands at the broker, marks that, and
/// goes on behind it. With Fence::none there is nothing to compare with: it marks what was
/// acknowledged, and sends the rest again under the same ids. So of each stream one message is in
/// flight at a time.
class FencedLane final : public Lane {
 public:
  FencedLane(Core& core, PartitionId partition) noexcept
      : Lane{core, partition}, chain_{core}, doubt_{core} {}

  /// Nothing is in flight, and nothing known is unmarked.
  bool is_idle() const noexcept { return chain_.empty() && !doubt_.is_asked(); }
  /// Sends what may be sent, at most `budget` messages, which it lowers.
  void pump(int& budget);
  /// Notes what was acknowledged, unless more of the same batch is about to be.
  void mark_if_due();
  /// What is due by time: timeouts, the end of a backoff.
  void on_time();
  Steady deadline() const;
  /// An operator said that it is to try at once, if it is backing off: it looks at the broker
  /// first.
  void retry();

  void on_answer(const Answer& answer);
  /// What was in flight is unknown.
  void on_session_lost();

 private:
  using Link = Chain::Link;

  /// The first message of the chain that wasn't stored, and what the broker said.
  struct Failure {
    Link link = {};
    Answer answer = {};
    /// The partition has waited since: no need to wait for this, too.
    bool has_waited = false;
  };

  void begin(const Standing& standing) override;
  void forget() override;

  bool is_fenced() const noexcept { return core_.fence != Fence::none; }

  // Publishing.
  std::size_t window() const noexcept;
  BatchLimit wanted(int budget) const;
  /// True if all of them went; the rest waits for the next step.
  bool publish(const std::vector<PendingMessage>& messages);
  /// Without a fence: cuts the batch before a message whose stream has one in flight.
  void cut(PendingBatch& batch);
  bool is_blocked() const noexcept;
  /// Moves what can't be published to what is to be parked.
  static void sort_out(PendingBatch& batch, Advance& advance);
  bool gave_up_killer(const PendingMessage& message);
  bool charge_suspect(const PendingMessage& message);
  void acquit_survived();

  // Answers.
  void on_failure(const Link& link, const Answer& answer);
  /// An answer didn't come: nobody knows where the partition stands. Other lanes go on.
  void miss(const Answer& missing);
  /// Without a fence: notes everything that was stored, before what is in flight is forgotten.
  bool mark_stored();
  bool advance(const Advance& advance, bool durable);

  // Doubt, and the way out of it.
  void doubt();
  void ask();
  void on_read_back(const Answer& answer);
  void end_look(bool has_end, std::uint64_t holes);
  /// Stops the partition; messages that seem lost are looked for again first.
  void on_contradiction(StopReason reason, const Answer& answer);
  bool accept(std::span<const FoundMessage> messages, const Answer& answer);
  /// Something waits that comes before what was found, and wasn't found.
  bool passes_what_waits(std::span<const FoundMessage> messages);
  /// As an operator wants it: marks what is ours, passes over what isn't, goes on behind all of it.
  void adopt(const Answer& answer, const Verdict& verdict);
  /// Marks those that are ours, beside what `advance` has: none of them is to be sent again.
  bool mark_found(Advance advance, std::span<const FoundMessage> messages,
                  const std::vector<EventId>& ids);
  bool is_ours(const FoundMessage& found, const EventId& id) const;
  bool is_ours(const FoundMessage& found) const { return is_ours(found, ids_of({&found, 1})[0]); }
  std::vector<EventId> ids_of(std::span<const FoundMessage> messages) const;
  void resume(const Answer& answer);
  /// Adds the limit that was met, as far as the broker or its stream tell it.
  static void explain(Failure& failure, const Answer& stream);
  void act_on(const Failure& failure);
  void give_up(const PendingMessage& message, ParkedMessage::Reason reason, const Trouble& trouble);

  Chain chain_;
  Doubt doubt_;
  Suspicion suspicion_;
  std::optional<Failure> failure_;
  /// Without a fence: the stream of the message that a batch was cut at, and how many messages the
  /// next one is to have.
  std::optional<std::int64_t> blocked_by_;
  int wanted_ = std::numeric_limits<int>::max();
  /// Since a message was given up: how many may be in flight. Where one is, more may be, and what
  /// was sent behind each would be read and sent again.
  std::size_t after_refusal_ = std::numeric_limits<std::size_t>::max();
  bool adopted_ = false;
  /// A part of what stands there is marked.
  bool adopting_ = false;
  /// The broker ended there, before the position: it is asked from there on, for what is missing.
  std::optional<std::uint64_t> broker_end_;
};

}  // namespace stela::relay
