// How many connections a store on PostgreSQL reads over, and who waits for one.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace stela::postgres::session_pool_test {
namespace {

using namespace std::chrono_literals;
using test::append;
using test::eventually;
using test::message_of;
using test::PostgresServer;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;

class PostgresReaders : public ::testing::Test {
 protected:
  Store open_store(Options options) {
    return postgres::open(server.url() + "&application_name=shop", options);
  }
  /// One that has an event, with all connections that it needs, one of which reads.
  Store open_used(Options options) {
    Store store = open_store(options);
    append(store, "order-1");
    store.last_sequence();
    return store;
  }
  /// The processes of the server that work for the store now.
  std::set<std::int64_t> connections() {
    const Result rows =
        asking.query_text("SELECT pid FROM pg_stat_activity WHERE application_name = 'shop'", {});
    std::set<std::int64_t> all;
    for (int row = 0; row < rows.rows(); ++row)
      all.insert(std::stoll(std::string{rows.bytes(row, 0)}));
    return all;
  }

  PostgresServer server;
  Connection asking{{.conninfo = server.url()}};
};

/// A connection that reads is in use as long as this lives.
class Holder {
 public:
  explicit Holder(Store& store)
      : thread_{[this, &store] {
          store.database().read([this](auto&) {
            has_begun_.count_down();
            ends_.wait();
          });
        }} {
    has_begun_.wait();
  }
  ~Holder() { ends_.count_down(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  std::latch has_begun_{1};
  std::latch ends_{1};
  std::jthread thread_;
};

TEST_F(PostgresReaders, ReadOverTheConnectionThatTheStoreWasOpenedBy) {
  {
    Store first = open_store({});
    append(first, "order-1");
  }
  ASSERT_TRUE(eventually([&] { return connections().empty(); }));
  Store store = open_store({.read_only = true, .durable_reads = false});
  const auto opened = connections();
  ASSERT_EQ(opened.size(), 1U);

  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  EXPECT_FALSE(store.read_all({}).next_page().empty());

  EXPECT_EQ(connections(), opened);
}

TEST_F(PostgresReaders, AreNoMoreThanTheOptionSaysForAnyNumberOfThreads) {
  constexpr int threads = 64;
  constexpr int reads = 20;
  constexpr std::size_t readers = 3;
  Store store = open_used({.readers = readers});
  const std::size_t others = connections().size() - 1;
  std::atomic<int> left{threads};
  std::vector<std::jthread> reading;
  for (int i = 0; i < threads; ++i) {
    reading.emplace_back([&] {
      for (int j = 0; j < reads; ++j) EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
      --left;
    });
  }
  std::set<std::int64_t> seen;
  while (left > 0) seen.merge(connections());
  reading.clear();
  seen.merge(connections());
  EXPECT_LE(seen.size(), others + readers);
}

TEST_F(PostgresReaders, ReadInsideAReadOverOneMoreConnectionThatIsClosed) {
  Store store = open_used({.readers = 1, .busy_timeout = 100ms});
  const std::size_t kept = connections().size();
  store.database().read([&](auto&) {
    EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
    store.database().read([&](auto&) {
      for (const StoredEvent& event : store.read_all()) {
        EXPECT_EQ(event.sequence, GlobalSequence{1});
      }
      EXPECT_TRUE(eventually([&] { return connections().size() == kept + 1; }));
    });
  });
  EXPECT_TRUE(eventually([&] { return connections().size() == kept; }));
}

TEST_F(PostgresReaders, NeverWaitForEachOtherAcrossStores) {
  Store one = open_store({.readers = 1, .busy_timeout = 100ms});
  Store two = open_store({.readers = 1, .busy_timeout = 100ms});
  std::barrier both{2};
  const auto read = [&](Store& outer, Store& inner) {
    outer.database().read([&](auto&) {
      both.arrive_and_wait();
      EXPECT_EQ(inner.last_sequence(), GlobalSequence{0});
      both.arrive_and_wait();
    });
  };
  std::jthread other{[&] { read(two, one); }};
  read(one, two);
}

TEST_F(PostgresReaders, EndAWaitAsStoreBusyThatSaysWhatToDo) {
  Store store = open_store({.readers = 2, .busy_timeout = 100ms});
  std::optional<Holder> first{store};
  const Holder second{store};
  EXPECT_THAT(message_of<StoreBusy>([&] { store.last_sequence(); }),
              AllOf(HasSubstr("all 2 connections that read were in use for 100 ms"),
                    HasSubstr("set readers to more")));
  first.reset();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
}

TEST_F(PostgresReaders, AreWaitedForByNobodyWhomOthersWaitFor) {
  Store store = open_store({.readers = 1, .busy_timeout = 100ms});
  const Holder holder{store};
  store.transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
  });
  store.database().write([&](auto&) { EXPECT_EQ(store.last_sequence(), GlobalSequence{1}); });
  EXPECT_GT(store.database().now(), Timestamp{});
  EXPECT_THROW(store.last_sequence(), StoreBusy);
}

TEST_F(PostgresReaders, TakeTurnsSoThatNobodyFailsWhileOthersMoveOn) {
  constexpr std::size_t threads = 16;
  constexpr std::int64_t reads = 1600;
  Store store = open_store({.readers = 1});
  std::vector<std::int64_t> counts(threads);
  std::atomic<std::int64_t> total{0};
  std::barrier start{threads};
  std::vector<std::jthread> reading;
  for (std::int64_t& count : counts) {
    reading.emplace_back([&] {
      start.arrive_and_wait();
      for (; total < reads; ++total) {
        store.database().read([&](auto&) { ++count; });
      }
    });
  }
  reading.clear();
  EXPECT_THAT(counts, Each(Ge(reads / static_cast<std::int64_t>(threads) / 2)));
}

TEST_F(PostgresReaders, FailForTheSameReasonWhereTheServerIsGone) {
  Store store = open_used({.readers = 1, .busy_timeout = 300ms});
  server.crash();
  std::vector<std::string> said(4);
  std::vector<std::jthread> reading;
  for (std::string& text : said) {
    reading.emplace_back([&] { text = message_of<StoreBusy>([&] { store.last_sequence(); }); });
  }
  reading.clear();
  EXPECT_THAT(said, Each(HasSubstr("is the server running?")));
  server.start_again();
  EXPECT_TRUE(eventually([&] {
    try {
      return store.last_sequence() == GlobalSequence{1};
    } catch (const StoreBusy&) {
      return false;
    }
  }));
}

TEST_F(PostgresReaders, MustBeSomeAndNotTooMany) {
  EXPECT_THAT(message_of<UsageError>([&] { open_store({.readers = 0}); }),
              HasSubstr("readers is 0; it must be 1 to 1000"));
  EXPECT_THROW(open_store({.readers = 1001}), UsageError);
}

}  // namespace
}  // namespace stela::postgres::session_pool_test
