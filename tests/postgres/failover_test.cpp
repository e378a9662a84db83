// A store on PostgreSQL whose primary gives way to its standby, and one that reads from a standby.
#include "database/database.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/postgres_pair.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace stela::postgres::failover_test {
namespace {

using namespace std::chrono_literals;

using test::append;
using test::eventually;
using test::message_of;
using ::testing::HasSubstr;

/// How many events there are, each once and in order; 0 if not.
std::int64_t count_dense(EventStore& store) {
  std::int64_t next = 1;
  for (const StoredEvent& event : store.read_all()) {
    if (event.sequence.value() != next++) return 0;
  }
  return next - 1;
}

bool lets_nobody_in(const test::PostgresServer& server) {
  try {
    server.ask("SELECT 1");
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

/// Appends events under append ids, each once, and notes those that it was answered.
class Load {
 public:
  explicit Load(const std::string& url) : store_{stela::open(url)} {}

  void run(const std::stop_token& stop) {
    for (int number = 0; !stop.stop_requested(); ++number) {
      const std::string id = "append-" + std::to_string(number);
      try {
        append(store_, "order-1", {NewEvent{"noted", 1, false, id}}, id);
        answered_.insert(id);
        ++count_;
      } catch (const Error& e) {
        if (!e.is_retryable() && e.code() != ErrorCode::commit_in_doubt) throw;
      }
    }
  }
  int count() const noexcept { return count_; }
  /// Once it has run.
  const std::set<std::string>& answered() const noexcept { return answered_; }

 private:
  Store store_;
  std::set<std::string> answered_;
  std::atomic<int> count_{0};
};

TEST(PostgresFailover, LosesNothingWithASynchronousStandby) {
  test::PostgresPair pair;
  stela::open(pair.url());
  pair.make_synchronous();
  Load load{pair.url()};
  std::jthread appending{[&](const std::stop_token& stop) { load.run(stop); }};
  ASSERT_TRUE(eventually([&] { return load.count() > 50; }));
  pair.fail_over();
  const int before = load.count();
  // It finds the new primary by itself.
  EXPECT_TRUE(eventually([&] { return load.count() > before + 50; }));
  appending.request_stop();
  appending.join();

  Store store = stela::open(pair.url());
  EXPECT_GE(count_dense(store), static_cast<std::int64_t>(load.answered().size()));
  std::multiset<std::string> stored;
  for (const StoredEvent& event : store.read_all()) stored.emplace(event.payload);
  for (const std::string& id : load.answered()) EXPECT_EQ(stored.count(id), 1U) << id;
  EXPECT_EQ(std::set<std::string>(stored.begin(), stored.end()).size(), stored.size());
}

TEST(PostgresFailover, IsWaitedForByAnAppend) {
  test::PostgresPair pair;
  Store store = stela::open(pair.url());
  append(store, "order-1");
  pair.catch_up();
  pair.primary().crash();
  std::jthread promoting{[&] { pair.standby().promote(); }};
  // No server takes it yet; the standby does soon.
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  EXPECT_EQ(count_dense(store), 2);
}

TEST(PostgresFailover, ForgetsWhatWasDurableOnTheLostPrimary) {
  test::PostgresPair pair;
  Store store = stela::open(pair.url());
  append(store, "order-1");
  pair.catch_up();
  pair.cut_replication();
  append(store, "order-1");
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  pair.fail_over();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  pair.standby().stop_flushing_in_the_background();
  EXPECT_EQ(append(store, "order-2").first, GlobalSequence{2});
  pair.standby().crash();
  pair.standby().start_again();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST(PostgresFailover, EndsTheWaitOfAnAppendWhenNoServerComesBack) {
  test::PostgresServer server;
  Store store = postgres::open(server.url(), {.busy_timeout = 200ms});
  append(store, "order-1");
  server.crash();
  EXPECT_THAT(message_of<StoreBusy>([&] { append(store, "order-1"); }),
              HasSubstr("is the server running?"));
  EXPECT_THROW(store.last_sequence(), StoreBusy);
  server.start_again();
  EXPECT_TRUE(eventually([&] {
    try {
      return append(store, "order-1").first == GlobalSequence{2};
    } catch (const StoreBusy&) {
      return false;
    }
  }));
}

TEST(PostgresBackup, ThatTakesTheDatabasesPlaceTakesNothingForDurable) {
  test::PostgresServer server;
  const std::string dump = server.folder() + "/shop.sql";
  server.ask("CREATE DATABASE shop");
  Store store = stela::open(server.url("shop"));
  append(store, "order-1");
  server.dump("shop", dump);
  append(store, "order-1", 2);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});

  // The store's process outlives it.
  server.replace_by_dump("shop", dump);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  server.stop_flushing_in_the_background();
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  server.crash();
  server.start_again();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST(PostgresStandby, IsNoPrimary) {
  test::PostgresPair pair;
  stela::open(pair.primary().url());
  pair.catch_up();
  EXPECT_THAT(message_of<StoreBusy>([&] { stela::open(pair.standby().url()); }),
              HasSubstr("hot standby"));
  EXPECT_THAT(message_of<StoreBusy>([&] {
                append(*std::make_unique<Store>(
                           stela::open(pair.standby().url() + "&target_session_attrs=any")),
                       "order-1");
              }),
              HasSubstr("open the store read-only"));
}

TEST(PostgresStandby, ShowsAReadOnlyStoreTheEventsInOrder) {
  constexpr int events = 300;
  test::PostgresPair pair;
  Store store = stela::open(pair.primary().url());
  pair.catch_up();
  Store reader = postgres::open(pair.standby().url(), {.read_only = true});
  EXPECT_EQ(reader.id(), store.id());
  std::jthread appending{[&] {
    for (int i = 0; i < events; ++i) append(store, "order-" + std::to_string(i % 3));
  }};
  // A naive tail misses nothing.
  std::int64_t next = 1;
  EXPECT_TRUE(eventually([&] {
    for (const StoredEvent& event : reader.read_all({.from = GlobalSequence{next}})) {
      if (event.sequence.value() != next++) return false;
    }
    return next > events;
  }));
  EXPECT_EQ(next, events + 1);
  EXPECT_THAT(message_of<UsageError>([&] { append(reader, "order-1"); }),
              HasSubstr("opened read-only"));
  EXPECT_THROW(reader.transact([](Transaction&) {}), UsageError);
  EXPECT_THROW(reader.database().write_along([](database::Connection&) {}, database::Sync::none),
               UsageError);
}

TEST(PostgresStandby, IsReadAsAPrimaryOnceItIsPromoted) {
  test::PostgresPair pair;
  Store store = stela::open(pair.url());
  append(store, "order-1");
  pair.catch_up();
  Store reader = postgres::open(pair.standby().url(), {.read_only = true});
  EXPECT_EQ(reader.last_sequence(), GlobalSequence{1});
  pair.fail_over();
  pair.standby().stop_flushing_in_the_background();
  pair.standby().ask(
      "SET synchronous_commit = off; INSERT INTO stela.events SELECT sequence + 1, stream, "
      "version + 1, recorded_at, 0, 0, kind, gen_random_uuid(), NULL, NULL, NULL, '' "
      "FROM stela.events");
  // What it shows now may be lost until it is flushed, and the reader does that.
  EXPECT_EQ(reader.last_sequence(), GlobalSequence{2});
  pair.standby().crash();
  pair.standby().start_again();
  EXPECT_EQ(pair.standby().ask("SELECT max(sequence) FROM stela.events"), "2");
}

TEST(PostgresStandby, ThatIsReachedInPlaceOfThePrimaryPromisesNothingOfIt) {
  test::PostgresPair pair;
  Store store = stela::open(pair.primary().url());
  Store reader = postgres::open(pair.conninfo(), {.read_only = true});
  EXPECT_EQ(reader.last_sequence(), GlobalSequence{});
  append(store, "order-1");
  pair.catch_up();
  // It lets nobody in any more, and serves those that are in.
  ASSERT_EQ(kill(pair.primary().id(), SIGTERM), 0);
  ASSERT_TRUE(eventually([&] { return lets_nobody_in(pair.primary()); }));
  EXPECT_THROW(reader.last_sequence(), StoreBusy);
  pair.primary().crash();
  EXPECT_EQ(reader.last_sequence(), GlobalSequence{1});
}

TEST(PostgresStandby, IsRefusedIfItsTablesAreMissing) {
  const test::PostgresServer server;
  EXPECT_THAT(
      message_of<SchemaMismatch>([&] { postgres::open(server.url(), {.read_only = true}); }),
      HasSubstr("open the store once"));
  EXPECT_EQ(server.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'stela'"), "0");
}

}  // namespace
}  // namespace stela::postgres::failover_test
