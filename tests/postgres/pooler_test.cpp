// A store on PostgreSQL behind PgBouncer, which gives each transaction another of its connections.
#include "support/pooler.hpp"
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::postgres::pooler_test {
namespace {

using test::append;
using test::eventually;
using test::message_of;
using ::testing::HasSubstr;

class PostgresPooler : public ::testing::Test {
 protected:
  /// Lines of everything that is stored.
  static std::vector<std::string> all(EventStore& store) { return test::lines(store.read_all()); }

  test::PostgresServer server;
  test::Pooler pooler{server};
};

TEST_F(PostgresPooler, LetsSeveralStoresAppendAndRead) {
  constexpr int stores = 3;
  constexpr int each = 40;
  Store reader = stela::postgres::open(pooler.conninfo());
  std::vector<std::jthread> threads;
  for (int i = 0; i < stores; ++i) {
    threads.emplace_back([&, i] {
      Store store = stela::postgres::open(pooler.conninfo());
      for (int j = 0; j < each; ++j) {
        retry([&] { append(store, "order-" + std::to_string(i)); });
        if (j % 8 != 0) continue;
        retry([&] {
          store.transact([&](Transaction& transaction) { append(transaction, "order-x"); });
        });
      }
    });
  }
  std::int64_t next = 1;
  EXPECT_TRUE(eventually([&] {
    for (const StoredEvent& event : reader.read_all({.from = GlobalSequence{next}})) {
      if (event.sequence.value() != next++) return false;
    }
    return next > stores * (each + each / 8);
  }));
  threads.clear();
  // The same as without the pooler.
  Store direct = stela::open(server.url());
  EXPECT_EQ(all(reader), all(direct));
}

TEST_F(PostgresPooler, KeepsNothingOfAStoresSessionForOthers) {
  Store store = stela::postgres::open(pooler.conninfo(), {.schema = "shop"});
  append(store, "order-1");
  append(store, "order-1", 3);
  store.database().read([](database::Connection&) {});
  EXPECT_EQ(store.last_sequence(), GlobalSequence{4});
  // Each of its connections to the server is as it was.
  EXPECT_EQ(server.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
  const test::Pooler one{server, "default_pool_size = 1"};
  Store other = stela::postgres::open(one.conninfo(), {.schema = "shop"});
  append(other, "order-1");
  other.transact([](Transaction& transaction) {
    Sql{transaction}.execute("SELECT set_config('statement_timeout', '1ms', false)");
  });
  Connection connection{{.conninfo = one.conninfo()}};
  for (const auto& [name, value] :
       {std::pair{"search_path", "\"$user\", public"}, std::pair{"jit", "on"},
        std::pair{"synchronous_commit", "on"}, std::pair{"lock_timeout", "0"},
        std::pair{"statement_timeout", "0"}}) {
    const Result shown = connection.query_text("SHOW " + std::string{name}, {});
    EXPECT_EQ(shown.bytes(0, 0), value) << name;
  }
}

TEST_F(PostgresPooler, LosesNothingThatWasAnsweredWhenTheServerCrashesBehindIt) {
  Store store = stela::postgres::open(pooler.conninfo());
  append(store, "order-1");
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  server.stop_flushing_in_the_background();
  server.ask(
      "SET synchronous_commit = off; INSERT INTO stela.events SELECT sequence + 1, stream, "
      "version + 1, recorded_at, 0, 0, kind, gen_random_uuid(), NULL, NULL, NULL, '' "
      "FROM stela.events");
  server.crash();
  server.start_again();
  // The connections to the pooler may be as they were, and the run is another one.
  EXPECT_TRUE(eventually([&] {
    try {
      return store.last_sequence() == GlobalSequence{1};
    } catch (const StoreBusy&) {
      return false;
    }
  }));
  server.stop_flushing_in_the_background();
  EXPECT_TRUE(eventually([&] {
    try {
      return append(store, "order-1").first == GlobalSequence{2};
    } catch (const StoreBusy&) {
      return false;
    }
  }));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  server.crash();
  server.start_again();
  EXPECT_EQ(server.ask("SELECT max(sequence) FROM stela.events"), "2");
}

TEST_F(PostgresPooler, IsConnectedToAgainWhenItIsRestarted) {
  Store store = stela::postgres::open(pooler.conninfo());
  append(store, "order-1");
  pooler.restart();
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(PostgresPooler, WithAPoolForEachStatementIsRefusedByName) {
  const test::Pooler for_statements{server, "pool_mode = statement"};
  EXPECT_THAT(message_of<StoreFailed>([&] { stela::postgres::open(for_statements.conninfo()); }),
              HasSubstr("pool_mode"));
}

TEST_F(PostgresPooler, IsNoPlaceForAReadOnlyStore) {
  EXPECT_THAT(message_of<UsageError>(
                  [&] { stela::postgres::open(pooler.conninfo(), {.read_only = true}); }),
              HasSubstr("name the server itself"));
}

}  // namespace
}  // namespace stela::postgres::pooler_test
