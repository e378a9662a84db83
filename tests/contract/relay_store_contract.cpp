// What every store does for a relay, and for operators: the one on SQLite, and the simulator's
// model of it. A new store joins by adding a Subject to the list at the end.
#include "contract/subject_names.hpp"
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
#include <string>
#include <vector>

namespace stela {
namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 15s;

struct Model {
  static constexpr const char* name = "Model";
  explicit Model(int partitions) : store{clock, truth, partitions, chance} {
    truth.know_store(store.id());
  }

  void append(int stream) { store.append(stream, true); }
  std::unique_ptr<relay::Store> port() { return store.port(); }
  relay::Operations& operations() { return store; }
  std::int64_t number(int stream) const { return stream; }
  /// The model knows what stands at the broker, and holds the store to it.
  void arrive(PartitionId partition, std::int64_t sequence, std::int64_t redelivery) {
    truth.on_stored(partition, {.message = {.id = store.event_id(sequence).to_string(),
                                            .store_id = store.id(),
                                            .event = sequence,
                                            .redelivery = redelivery}});
  }

  testing::ManualClock clock;
  sim::Chance chance{7};
  sim::Truth truth{Fence::none};
  sim::ModelStore store;
};

struct Sqlite {
  static constexpr const char* name = "Sqlite";
  explicit Sqlite(int partitions)
      : store{sqlite::open_in_memory({.clock = &clock})},
        outbox{store, {.partition_count = partitions}},
        port_of_operators{store, by_stream()} {}

  void append(int stream) {
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    test::append(store, "thing-" + std::to_string(stream),
                 {NewEvent{"thing.happened", 1, true, "{}"}});
  }
  std::unique_ptr<relay::Store> port() { return std::make_unique<outbox::RelayStore>(store); }
  relay::Operations& operations() { return port_of_operators; }
  /// Streams are numbered from 1, as they appear.
  std::int64_t number(int stream) const {
    return std::find(streams.begin(), streams.end(), stream) - streams.begin() + 1;
  }
  void arrive(PartitionId, std::int64_t, std::int64_t) {}

  testing::ManualClock clock;
  sqlite::Store store;
  Outbox outbox;
  outbox::SqliteOperations port_of_operators;
  std::vector<int> streams;
};

/// One partition unless said otherwise, and one worker's hold on each.
template <class Subject>
class RelayStoreContract : public ::testing::Test {
 protected:
  static constexpr PartitionId all{0};

  void begin(int partitions) {
    subject = std::make_unique<Subject>(partitions);
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

using Subjects = ::testing::Types<Model, Sqlite>;
TYPED_TEST_SUITE(RelayStoreContract, Subjects, test::SubjectNames);

// --- leases

TYPED_TEST(RelayStoreContract, LeasesAPartitionToOneAtATime) {
  EXPECT_EQ(this->acquire().epoch, 1);
  EXPECT_FALSE(this->store->acquire(this->all, "b", ttl));
  this->subject->clock.advance(ttl - 1us);
  EXPECT_FALSE(this->store->acquire(this->all, "b", ttl));

  this->subject->clock.advance(1us);
  const auto taken = this->acquire(this->all, "b");

  EXPECT_EQ(taken.epoch, 2);
  EXPECT_TRUE(taken.unclean);
}

TYPED_TEST(RelayStoreContract, RenewsALeaseThatIsStillHeld) {
  this->acquire();
  this->subject->clock.advance(ttl - 1s);
  EXPECT_TRUE(this->store->renew(this->leases[this->all], ttl));
  this->subject->clock.advance(ttl - 1s);
  EXPECT_FALSE(this->store->acquire(this->all, "b", ttl));
  this->subject->clock.advance(1s);
  EXPECT_FALSE(this->store->renew(this->leases[this->all], ttl)) << "it ran out";
}

TYPED_TEST(RelayStoreContract, ReleasesForTheNextOne) {
  this->acquire();
  this->store->release(this->leases[this->all]);
  const auto next = this->acquire(this->all, "b");
  EXPECT_EQ(next.epoch, 2);
  EXPECT_FALSE(next.unclean);
}

TYPED_TEST(RelayStoreContract, LetsOnlyTheOwnerRelease) {
  this->acquire();
  this->store->release({this->all, "b", 1});
  this->store->release({this->all, "a", 7});
  EXPECT_FALSE(this->store->acquire(this->all, "b", ttl));
}

TYPED_TEST(RelayStoreContract, TakesALeaseThatEndsAbsurdlyLate) {
  this->subject->clock.advance(24h);
  this->acquire();
  this->subject->clock.advance(-24h);
  EXPECT_EQ(this->acquire(this->all, "b").epoch, 2);
}

TYPED_TEST(RelayStoreContract, ShowsPartitionsAndWorkers) {
  this->begin(2);
  this->store->heartbeat("a", 20s);
  this->store->heartbeat("b", 20s);
  this->acquire(PartitionId{1});
  const relay::Overview now = this->look();
  EXPECT_THAT(now.workers, ::testing::ElementsAre("a", "b"));
  ASSERT_EQ(now.partitions.size(), 2u);
  EXPECT_EQ(now.partitions[0].owner, "a");
  EXPECT_FALSE(now.partitions[0].is_free);
  EXPECT_TRUE(now.partitions[1].is_free);

  this->store->leave("b");
  EXPECT_THAT(this->look().workers, ::testing::ElementsAre("a"));
  this->subject->clock.advance(20s);

  const relay::Overview later = this->look();
  EXPECT_TRUE(later.workers.empty());
  EXPECT_TRUE(later.partitions[0].is_free);
  EXPECT_TRUE(later.partitions[0].is_expired);
}

// --- messages

TYPED_TEST(RelayStoreContract, HandsOutWhatWaitsInOrder) {
  this->append({1, 2, 1, 3});
  EXPECT_EQ(this->next(), "1 2 3 4");
  EXPECT_EQ(this->next(this->all, 2), "1 2");
  EXPECT_EQ(this->next(this->all, 2, {.sequence = GlobalSequence{2}}), "3 4");
}

TYPED_TEST(RelayStoreContract, ForgetsWhatIsMarkedAndTellsTheNextOwner) {
  this->append({1, 2});
  this->acquire();
  EXPECT_TRUE(this->publish(1));
  relay::Advance flight{.flight_count = 1, .flight_through = GlobalSequence{2}};
  EXPECT_TRUE(this->store->advance(this->leases[this->all], flight, true));
  EXPECT_EQ(this->next(), "2");

  this->subject->clock.advance(ttl);
  const auto next = this->acquire(this->all, "b");

  EXPECT_EQ(next.published_through, GlobalSequence{1});
  EXPECT_EQ(next.broker_sequence, 1u);
  EXPECT_EQ(next.broker_id, "id of 1");
  EXPECT_EQ(next.flight_count, 1);
  EXPECT_EQ(next.flight_through, GlobalSequence{2});
}

TYPED_TEST(RelayStoreContract, TakesNothingFromAFormerOwner) {
  this->append({1});
  this->acquire();
  const relay::Lease stale = this->leases[this->all];
  this->subject->clock.advance(ttl);
  this->acquire(this->all, "b");
  this->leases[this->all] = stale;
  this->subject->arrive(this->all, 1, 0);

  EXPECT_FALSE(this->mark(1));
  EXPECT_FALSE(this->park(1));
  EXPECT_FALSE(this->store->note(stale, {.attempts = 3, .backoff = 9s}));
  EXPECT_FALSE(this->store->stop(stale, "poison", "event 1"));
  EXPECT_EQ(this->next(), "1");
  EXPECT_FALSE(this->look().partitions[0].is_stopped);
}

TYPED_TEST(RelayStoreContract, RemembersTrouble) {
  this->append({1});
  this->acquire();
  const relay::PendingMessage first{.sequence = GlobalSequence{1}};
  EXPECT_TRUE(this->store->note(this->leases[this->all], {.message = first,
                                                          .message_attempts = 2,
                                                          .message_backoff = 30s,
                                                          .attempts = 4,
                                                          .backoff = 60s,
                                                          .error = "full"}));
  this->subject->clock.advance(20s);

  const auto batch = this->store->next(this->all, {}, 1);
  EXPECT_EQ(batch->messages[0].attempts, 2);
  EXPECT_EQ(batch->messages[0].backoff_left, 10s);
  const auto next = this->acquire(this->all, "b");
  EXPECT_EQ(next.attempts, 4);
  EXPECT_EQ(next.backoff_left, 40s);
}

TYPED_TEST(RelayStoreContract, KnowsTheIdsOfEvents) {
  this->append({1});
  const auto batch = this->store->next(this->all, {}, 1);
  const std::vector<GlobalSequence> asked{GlobalSequence{1}, GlobalSequence{9}};
  const auto ids = this->store->ids_of(asked);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], batch->messages[0].event->id);
  EXPECT_EQ(ids[1], EventId{});
}

// --- parking

TYPED_TEST(RelayStoreContract, HoldsLaterMessagesOfAStreamThatHasParkedOnes) {
  this->append({1, 2, 1});
  this->acquire();
  EXPECT_TRUE(this->park(1));
  EXPECT_EQ(this->next(), "2 3 behind");
  this->append({1, 3});
  EXPECT_EQ(this->next(), "2 3 behind 4 behind 5");
}

TYPED_TEST(RelayStoreContract, SendsWhatIsBehindNothingAgain) {
  this->append({1, 1});
  this->acquire();
  this->park(1);
  this->retry(1, 1);
  // The worker saw it behind a parked one; meanwhile an operator has retried that.
  EXPECT_TRUE(this->park(2, 0, relay::ParkedMessage::Reason::behind));
  EXPECT_EQ(this->next(), "1r1 2r2");
}

TYPED_TEST(RelayStoreContract, TakesAParkedMessageThatArrivedAllTheSame) {
  this->append({1, 1});
  this->acquire();
  this->park(1);
  EXPECT_TRUE(this->publish(1));
  EXPECT_EQ(this->next(), "2");
  EXPECT_FALSE(this->discard(1));
}

TYPED_TEST(RelayStoreContract, RetriesThePrefixThatIsMeant) {
  this->append({1, 1, 1});
  this->acquire();
  this->park(1);
  this->park(2, 0, relay::ParkedMessage::Reason::behind);
  this->park(3, 0, relay::ParkedMessage::Reason::behind);

  EXPECT_EQ(this->retry(1, 2), 2);
  EXPECT_EQ(this->next(), "1r1 2r2");
  EXPECT_EQ(this->retry(1, 2), 0);
  EXPECT_EQ(this->retry(1, 3), 1);
  EXPECT_EQ(this->next(), "1r1 2r2 3r3");
}

TYPED_TEST(RelayStoreContract, KeepsTheOrderOfAStreamThatIsRetriedTwice) {
  this->append({1, 1});
  this->acquire();
  this->park(1);
  this->park(2, 0, relay::ParkedMessage::Reason::behind);
  this->retry(1, 2);
  this->park(1, 1);
  EXPECT_EQ(this->next(), "2r2 behind");

  EXPECT_EQ(this->retry(1, 1), 1);

  EXPECT_EQ(this->next(), "1r3 2r4");
}

TYPED_TEST(RelayStoreContract, DiscardsOnlyWhatIsParked) {
  this->append({1, 1});
  this->acquire();
  EXPECT_FALSE(this->discard(1));
  this->park(1);
  EXPECT_TRUE(this->discard(1));
  EXPECT_FALSE(this->discard(1));
  EXPECT_EQ(this->next(), "2");
}

TYPED_TEST(RelayStoreContract, SkipsOnRequest) {
  this->append({1, 1});
  this->acquire();
  EXPECT_TRUE(this->skip(1));
  EXPECT_EQ(this->next(), "2");
  EXPECT_EQ(this->republish({GlobalSequence{1}}), 0) << "it was never published";
}

// --- sending again

TYPED_TEST(RelayStoreContract, RepublishesWhatIsPublished) {
  this->append({1, 2, 1});
  this->acquire();
  this->publish(1);
  this->publish(2);
  EXPECT_EQ(this->republish({GlobalSequence{1}, GlobalSequence{2}, GlobalSequence{3}}), 2);
  EXPECT_EQ(this->next(), "1r1 republished 2r2 republished 3");
  EXPECT_EQ(this->next(this->all, 9, {.redelivery = 1}), "2r2 republished 3");
}

TYPED_TEST(RelayStoreContract, NeverGivesANumberTwice) {
  this->append({1});
  this->acquire();
  this->publish(1);
  for (std::int64_t i = 1; i < 4; ++i) {
    this->republish({GlobalSequence{1}});
    EXPECT_EQ(this->next(), "1r" + std::to_string(i) + " republished");
    EXPECT_TRUE(this->publish(1, i));
    EXPECT_EQ(this->next(), "");
  }
}

TYPED_TEST(RelayStoreContract, HasNothingToRetryOrRepublish) {
  this->append({1});
  EXPECT_EQ(this->retry(1, 9), 0);
  EXPECT_EQ(this->republish({GlobalSequence{1}}), 0);
  EXPECT_EQ(this->next(), "1");
}

// --- partitions

TYPED_TEST(RelayStoreContract, HoldsANewGenerationUntilTheOldOneIsDrained) {
  this->append({1, 2});
  this->acquire();
  this->subject->operations().resize(2, "ann");
  this->append({1});
  const PartitionId later = PartitionId::of("thing-1", 2);
  EXPECT_EQ(this->next(), "1 2");
  EXPECT_EQ(this->next(later), "");
  this->publish(1);
  EXPECT_EQ(this->next(later), "");
  EXPECT_TRUE(this->look().partitions[0].is_needed);

  this->publish(2);

  EXPECT_EQ(this->next(later), "3");
  EXPECT_FALSE(this->look().partitions[0].is_needed);
}

TYPED_TEST(RelayStoreContract, RetriesUnderTheGenerationThatIsBeingDrained) {
  this->append({1, 1});
  this->acquire();
  this->park(1);
  this->subject->operations().resize(2, "ann");
  this->append({1});
  EXPECT_EQ(this->retry(1, 1), 1);
  EXPECT_EQ(this->next(), "1r1 2");
  EXPECT_EQ(this->next(PartitionId::of("thing-1", 2)), "");
}

TYPED_TEST(RelayStoreContract, StopsAPartitionUntilItIsAdopted) {
  this->append({1});
  this->acquire();
  EXPECT_TRUE(this->store->stop(this->leases[this->all], "broker_lost", "it is empty"));
  this->store->release(this->leases[this->all]);
  EXPECT_FALSE(this->store->acquire(this->all, "b", ttl));
  EXPECT_TRUE(this->look().partitions[0].is_stopped);

  this->subject->operations().adopt(this->all, 41, "ann");

  const auto adopted = this->acquire(this->all, "b");
  EXPECT_EQ(adopted.broker_sequence, 41u);
  EXPECT_TRUE(adopted.adopted);
  EXPECT_FALSE(this->look().partitions[0].is_stopped);
}

}  // namespace
}  // namespace stela
