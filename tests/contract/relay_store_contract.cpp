// What every store does for a relay, and for operators: the one on SQLite, and the simulator's
// model of it. A new store joins as a Subject of its own.
#include "relay/operations.hpp"
#include "relay/store.hpp"
#include "simulation/model_store.hpp"
#include "sqlite/operations.hpp"
#include "sqlite/relay_store.hpp"
#include "support/histories.hpp"

#include <stela/outbox/outbox.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace stela {
namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 15s;

/// A store for a relay, and what the tests do to it.
struct Subject {
  virtual ~Subject() = default;

  virtual void append(int stream) = 0;
  virtual std::unique_ptr<relay::Store> port() = 0;
  virtual relay::Operations& operations() = 0;
  /// What the store calls that stream.
  virtual std::int64_t number(int stream) const = 0;
  /// Said before it is marked as published.
  virtual void arrive(PartitionId partition, std::int64_t sequence, std::int64_t redelivery) = 0;

  testing::ManualClock clock;
};

struct Model final : Subject {
  explicit Model(int partitions) : store{clock, truth, partitions, chance} {
    truth.know_store(store.id());
  }

  void append(int stream) override { store.append(stream, true); }
  std::unique_ptr<relay::Store> port() override { return store.port(); }
  relay::Operations& operations() override { return store; }
  std::int64_t number(int stream) const override { return stream; }
  /// The model knows what stands at the broker, and holds the store to it.
  void arrive(PartitionId partition, std::int64_t sequence, std::int64_t redelivery) override {
    truth.on_stored(partition, {.message = {.id = store.event_id(sequence).to_string(),
                                            .store_id = store.id(),
                                            .event = sequence,
                                            .redelivery = redelivery}});
  }

  sim::Chance chance{7};
  sim::Truth truth{Fence::none};
  sim::ModelStore store;
};

struct Sqlite final : Subject {
  explicit Sqlite(int partitions)
      : store{sqlite::open_in_memory({.clock = &clock})},
        outbox{store, {.partition_count = partitions}},
        port_of_operators{store, by_stream()} {}

  void append(int stream) override {
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    test::append(store, "thing-" + std::to_string(stream),
                 {NewEvent{"thing.happened", 1, true, "{}"}});
  }
  std::unique_ptr<relay::Store> port() override {
    return std::make_unique<outbox::RelayStore>(store);
  }
  relay::Operations& operations() override { return port_of_operators; }
  /// Streams are numbered from 1, as they appear.
  std::int64_t number(int stream) const override {
    return std::find(streams.begin(), streams.end(), stream) - streams.begin() + 1;
  }
  void arrive(PartitionId, std::int64_t, std::int64_t) override {}

  sqlite::Store store;
  Outbox outbox;
  outbox::SqliteOperations port_of_operators;
  std::vector<int> streams;
};

/// Which store, and how one is made with so many partitions.
struct Kind {
  const char* name;
  std::unique_ptr<Subject> (*make)(int partitions);

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

template <class S>
std::unique_ptr<Subject> make(int partitions) {
  return std::make_unique<S>(partitions);
}

/// One partition unless said otherwise, and one worker's hold on each.
class RelayStoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  static constexpr PartitionId all{0};

  void begin(int partitions) {
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
    leases[partition] = {partition, worker, standing->epoch};
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
  relay::Overview look() { return store->look(ttl, 20s); }

  std::unique_ptr<Subject> subject;
  std::unique_ptr<relay::Store> store;
  std::map<PartitionId, relay::Lease> leases;
  std::uint64_t broker_sequence = 0;
};

INSTANTIATE_TEST_SUITE_P(Stores, RelayStoreContract,
                         ::testing::Values(Kind{"Model", make<Model>},
                                           Kind{"Sqlite", make<Sqlite>}),
                         ::testing::PrintToStringParamName());

// --- leases

TEST_P(RelayStoreContract, LeasesAPartitionToOneAtATime) {
  EXPECT_EQ(acquire().epoch, 1);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  subject->clock.advance(ttl - 1us);
  EXPECT_FALSE(store->acquire(all, "b", ttl));

  subject->clock.advance(1us);
  const auto taken = acquire(all, "b");

  EXPECT_EQ(taken.epoch, 2);
  EXPECT_TRUE(taken.unclean);
}

TEST_P(RelayStoreContract, RenewsALeaseThatIsStillHeld) {
  acquire();
  subject->clock.advance(ttl - 1s);
  EXPECT_TRUE(store->renew(leases[all], ttl));
  subject->clock.advance(ttl - 1s);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  subject->clock.advance(1s);
  EXPECT_FALSE(store->renew(leases[all], ttl)) << "it ran out";
}

TEST_P(RelayStoreContract, ReleasesForTheNextOne) {
  acquire();
  store->release(leases[all]);
  const auto next = acquire(all, "b");
  EXPECT_EQ(next.epoch, 2);
  EXPECT_FALSE(next.unclean);
}

TEST_P(RelayStoreContract, LetsOnlyTheOwnerRelease) {
  acquire();
  store->release({all, "b", 1});
  store->release({all, "a", 7});
  EXPECT_FALSE(store->acquire(all, "b", ttl));
}

TEST_P(RelayStoreContract, TakesALeaseThatEndsAbsurdlyLate) {
  subject->clock.advance(24h);
  acquire();
  subject->clock.advance(-24h);
  EXPECT_EQ(acquire(all, "b").epoch, 2);
}

TEST_P(RelayStoreContract, ShowsPartitionsAndWorkers) {
  begin(2);
  store->heartbeat("a", 20s, {"connected"});
  store->heartbeat("b", 20s, {"down: no server answers", true});
  acquire(PartitionId{1});
  const relay::Overview now = look();
  EXPECT_THAT(now.workers, ::testing::ElementsAre("a", "b"));
  EXPECT_THAT(now.cut_off, ::testing::ElementsAre("b"));
  ASSERT_EQ(now.partitions.size(), 2u);
  EXPECT_EQ(now.partitions[0].owner, "a");
  EXPECT_FALSE(now.partitions[0].is_free);
  EXPECT_TRUE(now.partitions[1].is_free);

  store->heartbeat("b", 20s, {"connected"});
  EXPECT_TRUE(look().cut_off.empty());
  store->leave("b");
  EXPECT_THAT(look().workers, ::testing::ElementsAre("a"));
  subject->clock.advance(20s);

  const relay::Overview later = look();
  EXPECT_TRUE(later.workers.empty());
  EXPECT_TRUE(later.partitions[0].is_free);
  EXPECT_TRUE(later.partitions[0].is_expired);
}

// --- messages

TEST_P(RelayStoreContract, HandsOutWhatWaitsInOrder) {
  append({1, 2, 1, 3});
  EXPECT_EQ(next(), "1 2 3 4");
  EXPECT_EQ(next(all, 2), "1 2");
  EXPECT_EQ(next(all, 2, {.sequence = GlobalSequence{2}}), "3 4");
}

TEST_P(RelayStoreContract, HandsOutNoMoreBytesThanAskedForButOneMessage) {
  append({1, 2, 1, 3});
  const auto payload =
      static_cast<std::int64_t>(store->next(all, {}, {1})->messages.front().event->payload.size());
  ASSERT_GT(payload, 0);
  EXPECT_EQ(next(all, {.messages = 100, .bytes = 3 * payload}), "1 2 3");
  EXPECT_EQ(next(all, {.messages = 100, .bytes = 3 * payload - 1}), "1 2");
  EXPECT_EQ(next(all, {.messages = 100, .bytes = 0}), "1");
  EXPECT_EQ(next(all, {.messages = 1, .bytes = 3 * payload}), "1");
}

TEST_P(RelayStoreContract, ForgetsWhatIsMarkedAndTellsTheNextOwner) {
  append({1, 2});
  acquire();
  EXPECT_TRUE(publish(1));
  relay::Advance flight{.flight_count = 1, .flight_through = GlobalSequence{2}};
  EXPECT_TRUE(store->advance(leases[all], flight, true));
  EXPECT_EQ(next(), "2");

  subject->clock.advance(ttl);
  const auto next = acquire(all, "b");

  EXPECT_EQ(next.published_through, GlobalSequence{1});
  EXPECT_EQ(next.broker_sequence, 1u);
  EXPECT_EQ(next.broker_id, "id of 1");
  EXPECT_EQ(next.flight_count, 1);
  EXPECT_EQ(next.flight_through, GlobalSequence{2});
}

TEST_P(RelayStoreContract, TakesNothingFromAFormerOwner) {
  append({1});
  acquire();
  const relay::Lease stale = leases[all];
  subject->clock.advance(ttl);
  acquire(all, "b");
  leases[all] = stale;
  subject->arrive(all, 1, 0);

  EXPECT_FALSE(mark(1));
  EXPECT_FALSE(park(1));
  EXPECT_FALSE(store->note(stale, {.attempts = 3, .backoff = 9s}));
  EXPECT_FALSE(store->stop(stale, "poison", "event 1"));
  EXPECT_EQ(next(), "1");
  EXPECT_FALSE(look().partitions[0].is_stopped);
}

TEST_P(RelayStoreContract, RemembersTrouble) {
  append({1});
  acquire();
  const relay::PendingMessage first{.sequence = GlobalSequence{1}};
  EXPECT_TRUE(store->note(leases[all], {.message = first,
                                        .message_attempts = 2,
                                        .message_backoff = 30s,
                                        .attempts = 4,
                                        .backoff = 60s,
                                        .error = "full"}));
  subject->clock.advance(20s);

  const auto batch = store->next(all, {}, {1});
  EXPECT_EQ(batch->messages[0].attempts, 2);
  EXPECT_EQ(batch->messages[0].backoff_left, 10s);
  const auto next = acquire(all, "b");
  EXPECT_EQ(next.attempts, 4);
  EXPECT_EQ(next.backoff_left, 40s);
}

TEST_P(RelayStoreContract, KnowsTheIdsOfEvents) {
  append({1});
  const auto batch = store->next(all, {}, {1});
  const std::vector<GlobalSequence> asked{GlobalSequence{1}, GlobalSequence{9}};
  const auto ids = store->ids_of(asked);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], batch->messages[0].event->id);
  EXPECT_EQ(ids[1], EventId{});
}

// --- parking

TEST_P(RelayStoreContract, HoldsLaterMessagesOfAStreamThatHasParkedOnes) {
  append({1, 2, 1});
  acquire();
  EXPECT_TRUE(park(1));
  EXPECT_EQ(next(), "2 3 behind");
  append({1, 3});
  EXPECT_EQ(next(), "2 3 behind 4 behind 5");
}

TEST_P(RelayStoreContract, SendsWhatIsBehindNothingAgain) {
  append({1, 1});
  acquire();
  park(1);
  retry(1, 1);
  // The worker saw it behind a parked one; meanwhile an operator has retried that.
  EXPECT_TRUE(park(2, 0, relay::ParkedMessage::Reason::behind));
  EXPECT_EQ(next(), "1r1 2r2");
}

TEST_P(RelayStoreContract, TakesAParkedMessageThatArrivedAllTheSame) {
  append({1, 1});
  acquire();
  park(1);
  EXPECT_TRUE(publish(1));
  EXPECT_EQ(next(), "2");
  EXPECT_FALSE(discard(1));
}

TEST_P(RelayStoreContract, RetriesThePrefixThatIsMeant) {
  append({1, 1, 1});
  acquire();
  park(1);
  park(2, 0, relay::ParkedMessage::Reason::behind);
  park(3, 0, relay::ParkedMessage::Reason::behind);

  EXPECT_EQ(retry(1, 2), 2);
  EXPECT_EQ(next(), "1r1 2r2");
  EXPECT_EQ(retry(1, 2), 0);
  EXPECT_EQ(retry(1, 3), 1);
  EXPECT_EQ(next(), "1r1 2r2 3r3");
}

TEST_P(RelayStoreContract, KeepsTheOrderOfAStreamThatIsRetriedTwice) {
  append({1, 1});
  acquire();
  park(1);
  park(2, 0, relay::ParkedMessage::Reason::behind);
  retry(1, 2);
  park(1, 1);
  EXPECT_EQ(next(), "2r2 behind");

  EXPECT_EQ(retry(1, 1), 1);

  EXPECT_EQ(next(), "1r3 2r4");
}

TEST_P(RelayStoreContract, DiscardsOnlyWhatIsParked) {
  append({1, 1});
  acquire();
  EXPECT_FALSE(discard(1));
  park(1);
  EXPECT_TRUE(discard(1));
  EXPECT_FALSE(discard(1));
  EXPECT_EQ(next(), "2");
}

TEST_P(RelayStoreContract, SkipsOnRequest) {
  append({1, 1});
  acquire();
  EXPECT_TRUE(skip(1));
  EXPECT_EQ(next(), "2");
  EXPECT_EQ(republish({GlobalSequence{1}}), 0) << "it was never published";
}

// --- sending again

TEST_P(RelayStoreContract, RepublishesWhatIsPublished) {
  append({1, 2, 1});
  acquire();
  publish(1);
  publish(2);
  EXPECT_EQ(republish({GlobalSequence{1}, GlobalSequence{2}, GlobalSequence{3}}), 2);
  EXPECT_EQ(next(), "1r1 republished 2r2 republished 3");
  EXPECT_EQ(next(all, 9, {.redelivery = 1}), "2r2 republished 3");
}

TEST_P(RelayStoreContract, NeverGivesANumberTwice) {
  append({1});
  acquire();
  publish(1);
  for (std::int64_t i = 1; i < 4; ++i) {
    republish({GlobalSequence{1}});
    EXPECT_EQ(next(), "1r" + std::to_string(i) + " republished");
    EXPECT_TRUE(publish(1, i));
    EXPECT_EQ(next(), "");
  }
}

TEST_P(RelayStoreContract, HasNothingToRetryOrRepublish) {
  append({1});
  EXPECT_EQ(retry(1, 9), 0);
  EXPECT_EQ(republish({GlobalSequence{1}}), 0);
  EXPECT_EQ(next(), "1");
}

// --- partitions

TEST_P(RelayStoreContract, HoldsANewGenerationUntilTheOldOneIsDrained) {
  append({1, 2});
  acquire();
  subject->operations().resize(2, "ann");
  append({1});
  const PartitionId later = PartitionId::of("thing-1", 2);
  EXPECT_EQ(next(), "1 2");
  EXPECT_EQ(next(later), "");
  publish(1);
  EXPECT_EQ(next(later), "");
  EXPECT_TRUE(look().partitions[0].is_needed);

  publish(2);

  EXPECT_EQ(next(later), "3");
  EXPECT_FALSE(look().partitions[0].is_needed);
}

TEST_P(RelayStoreContract, RetriesUnderTheGenerationThatIsBeingDrained) {
  append({1, 1});
  acquire();
  park(1);
  subject->operations().resize(2, "ann");
  append({1});
  EXPECT_EQ(retry(1, 1), 1);
  EXPECT_EQ(next(), "1r1 2");
  EXPECT_EQ(next(PartitionId::of("thing-1", 2)), "");
}

TEST_P(RelayStoreContract, StopsAPartitionUntilItIsAdopted) {
  append({1});
  acquire();
  EXPECT_TRUE(store->stop(leases[all], "broker_lost", "it is empty"));
  store->release(leases[all]);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  EXPECT_TRUE(look().partitions[0].is_stopped);

  subject->operations().adopt(all, 41, "ann");

  const auto adopted = acquire(all, "b");
  EXPECT_EQ(adopted.broker_sequence, 41u);
  EXPECT_TRUE(adopted.adopted);
  EXPECT_FALSE(look().partitions[0].is_stopped);
}

}  // namespace
}  // namespace stela
