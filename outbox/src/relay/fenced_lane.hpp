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
#include <string>
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

  bool is_idle() const noexcept override { return chain_.empty() && !doubt_.is_asked(); }
  void mark_if_due() override;
  void on_time() override;
  void retry() override;
  Steady deadline() const override;
  void on_answer(const Answer& answer) override;
  void on_session() override;
  void on_session_lost() override;

 private:
  using Link = Chain::Link;

  /// The first message of the chain that wasn't stored, and what the broker said.
  struct Failure {
    PendingMessage message = {};
    Answer::Kind kind = Answer::Kind::unknown;
    std::string detail = {};
    std::uint64_t position = 0;
    FailureClass failure = FailureClass::other;
    /// Of the message's payload, and what the broker takes, if it said so.
    std::int64_t bytes = 0;
    SizeLimit size_limit = {};
    /// The partition has waited since: no need to wait for this, too.
    bool has_waited = false;
  };

  void begin(const Standing& standing) override;
  void forget() override;
  void send(int& budget) override;

  bool is_fenced() const noexcept { return core_.fence != Fence::none; }

  // Publishing.
  std::size_t window() const noexcept;
  BatchLimit wanted(int budget) const;
  /// True if all of them went; the rest waits for the next step.
  bool publish(const PendingBatch& batch, const std::vector<const PendingMessage*>& messages);
  void publish(const PendingMessage& message);
  /// Without a fence: cuts the batch before a message whose stream has one in flight.
  void cut(PendingBatch& batch);
  bool is_blocked() const noexcept;
  std::vector<const PendingMessage*> sort_out(const PendingBatch& batch, Advance& advance);
  bool gave_up_killer(const PendingMessage& message);
  bool charge_suspect(const PendingMessage& message);
  void acquit_survived();
  bool note_attempts(const PendingMessage& message, int attempts, std::string error);

  // Answers.
  void on_stored(Link& link, const Answer& answer);
  void on_failure(const Link& link, const Answer& answer);
  void settle();
  /// An answer didn't come: nobody knows where the partition stands. Other lanes go on.
  void miss(const std::string& what, FailureClass failure = FailureClass::no_answer);
  /// An answer to it didn't come in time. Without a fence its fate is all that isn't known.
  void miss(Link& link);
  /// Without a fence: notes everything that was stored, before what is in flight is forgotten.
  bool mark_stored();
  bool advance(const Advance& advance, bool durable);

  // Doubt, and the way out of it.
  void doubt();
  void ask();
  /// Nothing is known yet: false.
  bool ask_again();
  void on_read_back(const Answer& answer);
  void on_look(const Answer& answer);
  Verdict compare_with(const Answer& answer) const noexcept;
  /// Stops the partition; messages that seem lost are looked for again first.
  void on_contradiction(StopReason reason, const Answer& answer);
  bool accept(std::span<const FoundMessage> messages, const Answer& answer);
  /// Something waits that comes before what was found, and wasn't found.
  bool passes_what_waits(std::span<const FoundMessage> messages);
  /// As an operator wants it: marks what is ours, passes over what isn't, goes on behind all of it.
  bool adopt(const Answer& answer);
  /// The store knows what stands in the place of the partition's last message, or at the end before
  /// that; else all that stands there must be compared.
  bool knows(const FoundMessage* place, const Answer& answer,
             const std::vector<EventId>& ids) const;
  bool is_ours(const FoundMessage& found, const EventId& id) const;
  void drop_stored_failure(const Answer& answer);
  void wait_with_failure() noexcept;
  void resume(const Answer& answer);
  void report(const Failure& failure);
  /// Adds the limit that was met, as far as the broker or its stream tell it.
  static void explain(Failure& failure, const Answer& stream);
  void act_on(const Failure& failure);
  void give_up(const PendingMessage& message, ParkedMessage::Reason reason, int attempts,
               const std::string& error, FailureClass failure);

  Chain chain_;
  Doubt doubt_;
  Suspicion suspicion_;
  std::optional<Failure> failure_;
  /// Without a fence: the stream of the message that a batch was cut at, and how many messages the
  /// next one is to have.
  std::optional<std::int64_t> blocked_by_;
  int wanted_ = std::numeric_limits<int>::max();
  bool adopted_ = false;
  /// A part of what stands there is marked.
  bool adopting_ = false;
  /// The broker ended there, before the position: it is asked from there on, for what is missing.
  std::optional<std::uint64_t> broker_end_;
};

}  // namespace stela::relay
