// Writers and readers of one store on many threads. Run under tsan as well.
#include "support/counters.hpp"
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/memory_store.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace stela::test::threads_test {
namespace {

class Threads : public ::testing::Test {
 protected:
  static constexpr int writers = 6;
  static constexpr int appends = 60;

  void write(int writer) {
    const std::string stream = "order-" + std::to_string(writer % 4);
    for (int i = 0; i < appends; ++i) append(*store, stream, 1 + static_cast<std::size_t>(i % 3));
  }
  std::int64_t events_of_all_writers() const { return writers * (appends / 3) * 6; }

  TempDir dir = TempDir::in_memory();
  std::unique_ptr<Store> store = open_store(dir.file("shop.db"), {.checkpoint_pages = 50});
};

TEST_F(Threads, AreRefusedWhenATransactionAheadInLineWaitsForThem) {
  store.reset();
  store = open_store(dir.file("shop.db"), {.busy_timeout = std::chrono::milliseconds{50}});
  std::string refusal;
  store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    std::jthread{[&] {
      refusal = message_of<StoreBusy>([&] { append(*store, "order-2"); });
    }}.join();
  });
  append(*store, "order-3");

  EXPECT_NE(refusal.find("thread " + std::to_string(gettid()) + " ("), std::string::npos);
  EXPECT_EQ(store->last_sequence().value(), 2);
}

TEST(ThreadsOfAStoreInMemory, AreRefusedWhenATransactionWaitsForThem) {
  stela::testing::MemoryStore store{{.busy_timeout = std::chrono::milliseconds{50}}};
  std::string refusal;
  store.transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    std::jthread{[&] {
      refusal = message_of<StoreBusy>([&] { append(store, "order-2"); });
    }}.join();
  });
  append(store, "order-3");

  EXPECT_NE(refusal.find("another thread"), std::string::npos);
  EXPECT_EQ(store.last_sequence().value(), 2);
}

TEST_F(Threads, ReadCommittedEventsWithoutGapsWhileOthersWrite) {
  std::atomic<bool> done{false};
  std::atomic<int> gaps{0};
  std::vector<std::jthread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      std::int64_t seen = 0;
      while (!done || r == 0) {
        std::int64_t sequence = 0;
        for (const StoredEvent& event : store->read_all()) {
          if (event.sequence.value() != ++sequence) ++gaps;
        }
        if (sequence < seen) ++gaps;
        seen = sequence;
        if (seen == events_of_all_writers()) break;
      }
    });
  }
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < writers; ++w) workers.emplace_back([&, w] { write(w); });
  }
  done = true;
  readers.clear();

  EXPECT_EQ(gaps, 0);
  EXPECT_EQ(store->last_sequence().value(), events_of_all_writers());
}

TEST_F(Threads, AllSucceedOnOneHotAccountThatTheyRetry) {
  constexpr int threads = 8;
  constexpr int changes = 100;
  const auto id = Id<DemandCounter>::from("hot");
  Repository<DemandCounter> first{*store};
  DemandCounter counter{id};
  counter.add(0);
  first.save(counter);
  std::atomic<int> gave_up{0};
  const auto change = [&] {
    Repository<DemandCounter> counters{*store};
    retry([&] {
      DemandCounter current = counters.load(id);
      current.add(1);
      counters.save(current);
    });
  };

  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&] {
        for (int i = 0; i < changes; ++i) {
          try {
            change();
          } catch (const ConcurrencyConflict&) {
            ++gave_up;
          }
        }
      });
    }
  }

  EXPECT_EQ(gave_up, 0);
  EXPECT_EQ(first.load(id).state().sum, threads * changes);
}

TEST_F(Threads, HearOfEachCommitOnTheThreadThatMadeIt) {
  std::atomic<std::int64_t> heard{0};
  std::atomic<int> strangers{0};
  thread_local bool is_writing = false;
  const Subscription listening = store->on_commit([&](const CommitNotice& notice) {
    heard += static_cast<std::int64_t>(notice.events.size());
    if (!is_writing) ++strangers;
  });
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < writers; ++w) {
      workers.emplace_back([&, w] {
        is_writing = true;
        write(w);
      });
    }
  }

  EXPECT_EQ(heard, events_of_all_writers());
  EXPECT_EQ(strangers, 0);
}

TEST_F(Threads, MixAppendsTransactionsSnapshotsAndReads) {
  std::vector<std::jthread> workers;
  for (int w = 0; w < writers; ++w) {
    workers.emplace_back([&, w] {
      const StreamId stream = StreamId::parse("order-" + std::to_string(w));
      for (int i = 1; i <= appends; ++i) {
        if (i % 2 == 0) {
          append(*store, stream.name());
        } else {
          store->transact([&](Transaction& transaction) { append(transaction, stream.name()); });
        }
        store->save_snapshot(stream, {StreamVersion{i}, GlobalSequence{i}, 1, "state"});
        (void)store->find_snapshot(stream, StreamVersion::max(), GlobalSequence::max());
        std::int64_t version = 0;
        for (const StoredEvent& event : store->read_stream(stream)) {
          version = event.version.value();
        }
        ASSERT_EQ(version, i);
      }
    });
  }
  workers.clear();

  EXPECT_EQ(store->last_sequence().value(), writers * appends);
}

}  // namespace
}  // namespace stela::test::threads_test
