// Faults that sit between a worker and its ports.
#pragma once

#include "mutants/forwarding.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stela::mutants {

/// Hands out what waits in the wrong order.
class NoSort final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override {
    auto batch = ForwardingStore::next(partition, cursor, limit);
    std::reverse(batch->messages.begin(), batch->messages.end());
    return batch;
  }
};

/// Doesn't tell what has to join the parked messages of its stream.
class NoParkBehind final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override {
    auto batch = ForwardingStore::next(partition, cursor, limit);
    for (relay::PendingMessage& message : batch->messages) message.is_behind_parked = false;
    return batch;
  }
};

/// Marks whoever owns the partition: a store that knows of the fault takes a negative epoch for one
/// that it needn't compare.
class NoEpochInMark final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override {
    return ForwardingStore::advance({lease.partition, lease.owner, -lease.epoch}, advance, durable);
  }
};

/// Takes a message that failed three times for published.
class DropAfterThreeAttempts final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override {
    if (!trouble.message || trouble.message_attempts < 3) {
      return ForwardingStore::note(lease, trouble);
    }
    const relay::PendingMessage& dropped = *trouble.message;
    return advance(
        lease, {.published = {{dropped.sequence, dropped.sequence, 1, dropped.redelivery}}}, false);
  }
};

/// A worker that is left no partition takes all of them, under the epoch 0 of nobody.
class EmptyListMeansAll final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override {
    worker_ = worker;
    return ForwardingStore::heartbeat(worker, ttl, broker);
  }
  relay::Overview look() override {
    relay::Overview overview = ForwardingStore::look();
    takes_all_ = std::none_of(overview.partitions.begin(), overview.partitions.end(),
                              [&](const auto& p) { return p.is_free || p.owner == worker_; });
    for (auto& partition : overview.partitions) partition.is_free |= takes_all_;
    return overview;
  }
  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override {
    if (takes_all_) return relay::Standing{};
    return ForwardingStore::acquire(partition, worker, ttl);
  }

 private:
  std::string worker_;
  bool takes_all_ = false;
};

/// Compares the broker's sequence with the event's.
class FenceOnWrongSequence final : public ForwardingPublisher {
 public:
  using ForwardingPublisher::ForwardingPublisher;
  void publish(const OutgoingMessage& message) override {
    OutgoingMessage sent = message;
    sent.predecessor = Predecessor{static_cast<std::uint64_t>(message.previous.value())};
    ForwardingPublisher::publish(sent);
  }
};

/// Fences the first message of what is sent at once, and lets the others follow as they like.
class NaivePipeline final : public ForwardingPublisher {
 public:
  using ForwardingPublisher::ForwardingPublisher;
  void publish(const OutgoingMessage& message) override {
    OutgoingMessage sent = message;
    if (std::exchange(is_first_, false)) return ForwardingPublisher::publish(sent);
    sent.predecessor.reset();
    ForwardingPublisher::publish(sent);
  }
  void flush() override {
    is_first_ = true;
    ForwardingPublisher::flush();
  }

 private:
  bool is_first_ = true;
};

/// Acknowledges what was sent before the broker does.
class MarkBeforeAck final : public ForwardingPublisher {
 public:
  using ForwardingPublisher::ForwardingPublisher;
  void connect(std::uint64_t session, AnswerSink& sink) override {
    session_ = session;
    sink_ = &sink;
    ForwardingPublisher::connect(session, sink);
  }
  void publish(const OutgoingMessage& message) override {
    ForwardingPublisher::publish(message);
    sink_->take(
        {.session = session_,
         .request = message.request,
         .kind = Answer::Kind::stored,
         .broker_sequence = message.predecessor ? message.predecessor->broker_sequence + 1 : 0});
  }

 private:
  std::uint64_t session_ = 0;
  AnswerSink* sink_ = nullptr;
};

}  // namespace stela::mutants
