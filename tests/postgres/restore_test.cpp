// A dump that takes the place of a store's tables while a process has it open.
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace stela::postgres::restore_test {
namespace {

using namespace std::chrono_literals;

using test::append;
using test::eventually;
using test::message_of;
using ::testing::HasSubstr;

/// A store of four events, and a dump of the first. All connections outlive what is restored.
class PostgresRestore : public ::testing::Test {
 protected:
  PostgresRestore() {
    append(store, "order-1");
    server.dump("postgres", dump_);
    append(store, "order-1", 3);
  }

  void restore() { server.restore("postgres", dump_); }
  void restart_after_a_crash() {
    server.crash();
    server.start_again();
  }
  template <class Error, class Work>
  static bool fails(Work&& work) {
    try {
      work();
    } catch (const Error&) {
      return true;
    }
    return false;
  }

  test::PostgresServer server;
  Store store = postgres::open(server.url());

 private:
  const std::string dump_ = server.folder() + "/shop.sql";
};

TEST_F(PostgresRestore, LeavesNothingThatAnAppendTakesForDurable) {
  EXPECT_EQ(store.last_sequence(), GlobalSequence{4});
  restore();
  server.stop_flushing_in_the_background();
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  restart_after_a_crash();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(PostgresRestore, LeavesAStoreThatReadsOn) {
  EXPECT_EQ(store.last_sequence(), GlobalSequence{4});
  restore();
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  EXPECT_TRUE(eventually([&] { return !fails<StoreBusy>([&] { store.last_sequence(); }); }));
  EXPECT_EQ(test::lines(store.read_all()).size(), 2U);
}

TEST_F(PostgresRestore, EndsOneTransactionThatWrites) {
  const auto work = [&] {
    store.transact([](Transaction& transaction) { append(transaction, "order-1"); });
  };
  work();
  restore();
  EXPECT_THAT(message_of<StoreBusy>(work), HasSubstr("a backup has taken the place"));
  server.stop_flushing_in_the_background();
  work();
  restart_after_a_crash();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(PostgresRestore, LeavesNothingThatAFailureRestsOn) {
  Store appender = postgres::open(server.url(), {.commit_timeout = 1s});
  Store reader = postgres::open(server.url(), {.commit_timeout = 1s});
  EXPECT_GE(reader.last_sequence(), GlobalSequence{2});
  const auto work = [&] {
    reader.transact([&](Transaction& transaction) {
      restore();
      server.ask("ALTER SYSTEM SET synchronous_standby_names = 'missing'");
      server.ask("SELECT pg_reload_conf()");
      EXPECT_TRUE(
          eventually([&] { return fails<CommitInDoubt>([&] { append(appender, "order-1"); }); }));
      EventRange events = transaction.read_stream(StreamId::parse("order-1"));
      EXPECT_NE(events.begin(), events.end());
      throw std::runtime_error{"that has been done"};
    });
  };
  EXPECT_THROW(work(), StoreBusy);
}

TEST_F(PostgresRestore, EndsATransactionThatOnlyReads) {
  int times = 0;
  const auto work = [&] {
    store.transact([&](Transaction& transaction) {
      if (++times == 1) restore();
      EventRange events = transaction.read_stream(StreamId::parse("order-1"));
      EXPECT_NE(events.begin(), events.end());
    });
  };
  EXPECT_THAT(message_of<StoreBusy>(work), HasSubstr("a backup has taken the place"));
  EXPECT_NO_THROW(work());
}

}  // namespace
}  // namespace stela::postgres::restore_test
