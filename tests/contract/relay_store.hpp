// What the contract of a relay's stores is asked of; relay_stores.cpp lists the stores.
#pragma once

#include "relay/operations_port.hpp"
#include "relay/outbox_port.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// A store for a relay, and what the tests do to it.
struct RelaySubject {
  virtual ~RelaySubject() = default;

  virtual void append(int stream) = 0;
  virtual std::unique_ptr<relay::OutboxPort> port() = 0;
  virtual relay::Operations& operations() = 0;
  /// What the store calls that stream.
  virtual std::int64_t number(int stream) const = 0;
  /// Said before it is marked as published.
  virtual void arrive(PartitionId partition, std::int64_t sequence, std::int64_t redelivery) = 0;

  stela::testing::ManualClock clock;
};

/// Which store, and how one is made with so many partitions.
struct RelayStoreKind {
  const char* name;
  std::unique_ptr<RelaySubject> (*make)(int partitions);

  friend void PrintTo(const RelayStoreKind& kind, std::ostream* out) { *out << kind.name; }
};

/// One partition unless said otherwise, and one worker's hold on each.
class RelayStoreContract : public ::testing::TestWithParam<RelayStoreKind> {
 protected:
  static constexpr std::chrono::seconds ttl{15};
  static constexpr PartitionId all{0};

  void begin(int partitions) {
    store.reset();
    subject = GetParam().make(partitions);
    store = subject->port();
  }
  void SetUp() override { begin(1); }

  void append(std::initializer_list<int> streams) {
    for (const int stream : streams) subject->append(stream);
  }
  relay::Standing acquire(PartitionId partition = all, std::string_view worker = "a") {
    const auto standing = store->acquire(partition, worker, ttl);
    EXPECT_TRUE(standing);
    if (!standing) return {};
    leases[partition] = {partition, worker, standing->epoch, standing->run};
    return *standing;
  }
  /// "1 2r1 3 behind 4r2 republished": what is next.
  std::string next(PartitionId partition = all, int limit = 100, const relay::Cursor& from = {}) {
    return next(partition, relay::BatchLimit{limit}, from);
  }
  std::string next(PartitionId partition, const relay::BatchLimit& limit,
                   const relay::Cursor& from = {}) {
    std::string text;
    const auto batch = store->next(partition, from, limit);
    for (const auto& message : batch->messages) {
      if (!text.empty()) text += ' ';
      text += std::to_string(message.sequence.value());
      if (message.redelivery > 0) text += 'r' + std::to_string(message.redelivery);
      if (message.is_behind_parked) text += " behind";
      if (message.is_republished) text += " republished";
      EXPECT_NE(message.event, nullptr);
    }
    return text;
  }
  bool publish(std::int64_t sequence, std::int64_t redelivery = 0, PartitionId partition = all) {
    subject->arrive(partition, sequence, redelivery);
    return mark(sequence, redelivery, partition);
  }
  bool mark(std::int64_t sequence, std::int64_t redelivery = 0, PartitionId partition = all) {
    ++broker_sequence;
    relay::Advance advance;
    advance.published.push_back({GlobalSequence{sequence}, GlobalSequence{sequence}, 1, redelivery,
                                 broker_sequence, broker_sequence});
    advance.broker_sequence = broker_sequence;
    advance.broker_id = "id of " + std::to_string(sequence);
    return store->advance(leases[partition], advance, false);
  }
  bool park(std::int64_t sequence, std::int64_t redelivery = 0,
            relay::ParkedMessage::Reason reason = relay::ParkedMessage::Reason::refused) {
    relay::Advance advance;
    advance.parked.push_back({GlobalSequence{sequence}, redelivery, reason, 1, "too large"});
    return store->advance(leases[all], advance, false);
  }
  bool skip(std::int64_t sequence) {
    relay::Advance advance;
    advance.skipped.push_back({.sequence = GlobalSequence{sequence}, .error = "too large"});
    return store->advance(leases[all], advance, false);
  }
  std::int64_t retry(int stream, std::int64_t through) {
    return subject->operations().retry(subject->number(stream), GlobalSequence{through}, "ann");
  }
  bool discard(std::int64_t sequence) {
    return subject->operations().discard(GlobalSequence{sequence}, "ann");
  }
  std::int64_t republish(std::vector<GlobalSequence> sequences) {
    return subject->operations().republish(sequences, "ann");
  }
  relay::Overview look() { return store->look(); }

  std::unique_ptr<RelaySubject> subject;
  std::unique_ptr<relay::OutboxPort> store;
  std::map<PartitionId, relay::Lease> leases;
  std::uint64_t broker_sequence = 0;
};

}  // namespace stela::test
