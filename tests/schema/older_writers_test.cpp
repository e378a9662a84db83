// A database that a newer Stela migrates while an older one has it open. This code plays both: it
// is the older one, and, with a made-up migration, the newer one.
#include "outbox/file_broker.hpp"
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include "sqlite/core.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/eventstore/transfer.hpp>
#include <stela/framework/error.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <sstream>
#include <stop_token>

namespace stela::older_writers_test {
namespace {

using namespace std::chrono_literals;
using database::Migration;
using test::append;
using test::message_of;
using test::open_store;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Migration first{1, "wings", "CREATE TABLE wings (n INTEGER NOT NULL) STRICT;\n"};
constexpr Migration harmless{2, "feathers", "ALTER TABLE wings ADD COLUMN feathers INTEGER;\n"};
constexpr Migration shutting_out{2, "feathers",
                                 "-- Shuts out older writers.\n"
                                 "ALTER TABLE wings ADD COLUMN feathers INTEGER;\n"};

/// Two stores of one file: each is a process as far as the other can tell.
class OlderWriter : public ::testing::Test {
 protected:
  OlderWriter() {
    older->database().migrate("wings", std::array{first});
    append(*older, "order-1");
  }

  /// What a newer Stela does when it opens the database.
  static void upgrade(Store& newer, const Migration& migration) {
    newer.database().migrate("wings", std::array{first, migration});
  }
  std::int64_t events() { return test::RawSqlite{path}.integer("SELECT count(*) FROM events"); }

  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> older = open_store(path);
  std::unique_ptr<Store> newer = open_store(path);
};

TEST_F(OlderWriter, LivesThroughAHarmlessMigration) {
  upgrade(*newer, harmless);

  append(*older, "order-1");

  EXPECT_EQ(events(), 2);
}

TEST_F(OlderWriter, LeavesMigratingToAnOperatorIfItIsTold) {
  Store told = sqlite::open(path, {.migrate = false});
  EXPECT_THAT(message_of<SchemaMismatch>([&] { upgrade(told, harmless); }),
              HasSubstr("leaves migrating them to an operator"));
  // Tables that aren't there yet are made, and older ones of others don't matter.
  told.database().migrate("fins",
                          std::array{Migration{1, "fins", "CREATE TABLE fins (n INTEGER);\n"}});
  append(told, "order-1");
  upgrade(*newer, harmless);
  upgrade(told, harmless);
}

TEST_F(OlderWriter, IsRefusedAtItsNextAppendAfterABreakingMigration) {
  upgrade(*newer, shutting_out);

  const auto refusal = [&] {
    return message_of<SchemaMismatch>([&] { append(*older, "order-1"); });
  };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("'wings'"), HasSubstr("migration 2"), HasSubstr("knows 1"),
                               HasSubstr("restart this process with the newer Stela")));
  EXPECT_NE(refusal(), "") << "and at each one after that";
  EXPECT_EQ(events(), 1);
}

TEST_F(OlderWriter, IsRefusedWhateverItWrites) {
  upgrade(*newer, shutting_out);

  EXPECT_THROW(older->transact([](Transaction&) {}), SchemaMismatch);
  EXPECT_THROW(
      sqlite::core_of(*older).writer().run_along([](sqlite::Connection&) {}, sqlite::Sync::none),
      SchemaMismatch);
  EXPECT_THROW(older->forget_participant("anybody"), SchemaMismatch);
}

TEST_F(OlderWriter, ReadsOn) {
  upgrade(*newer, shutting_out);

  EXPECT_EQ(test::lines(older->read_all()).size(), 1U);
}

TEST_F(OlderWriter, IsRefusedByAnUpgradeBetweenTwoOfItsAppends) {
  for (int i = 0; i < 3; ++i) append(*older, "order-1");
  upgrade(*newer, shutting_out);
  append(*newer, "order-1");

  EXPECT_THROW(append(*older, "order-1"), SchemaMismatch);
}

TEST_F(OlderWriter, OfOtherTablesIsNotConcerned) {
  older = open_store(path);
  upgrade(*newer, shutting_out);

  append(*older, "order-1");

  EXPECT_EQ(events(), 2);
}

TEST_F(OlderWriter, ThatStartsAfterwardsIsRefusedWhenItOpensTheTables) {
  upgrade(*newer, shutting_out);
  older = open_store(path);

  EXPECT_THAT(
      message_of<SchemaMismatch>([&] { older->database().migrate("wings", std::array{first}); }),
      HasSubstr("newer Stela"));
}

TEST_F(OlderWriter, DoesNotStopTheNewerOne) {
  upgrade(*newer, shutting_out);

  append(*newer, "order-1");

  EXPECT_EQ(events(), 2);
  EXPECT_THAT(StoreOperations{*newer}.required_participants(), IsEmpty())
      << "nobody has to attach anything";
  EXPECT_THAT(test::problems_of(*newer), ::testing::Not(::testing::Contains(HasSubstr("schema:"))))
      << "what stands for it is sound";
}

TEST(NewDatabase, HasNoProcessesToShutOut) {
  auto store = sqlite::open_in_memory();

  store.database().migrate("wings", std::array{first, shutting_out});

  sqlite::core_of(store).reading().read([](sqlite::Connection& connection) {
    EXPECT_EQ(connection.integer("SELECT count(*) FROM stela_participants"), 0);
  });
}

TEST_F(OlderWriter, ImportsNothingAndTheNewerOneDoes) {
  auto source = sqlite::open_in_memory();
  std::stringstream one;
  export_events(*older, one);
  import_events(source, one);
  append(source, "order-1");
  std::stringstream two;
  export_events(source, two);
  upgrade(*newer, shutting_out);

  std::stringstream again{two.str()};
  EXPECT_THROW(import_events(*older, again), SchemaMismatch);
  EXPECT_EQ(import_events(*newer, two).imported, 1);
}

/// A relay of the older store, and a broker that takes everything.
class OlderWriterWithARelay : public OlderWriter {
 protected:
  OlderWriterWithARelay() { append(*older, "order-1", {NewEvent{"placed", 1, true, "{}"}}); }

  Outbox outbox{*older};
  test::FileBroker broker{dir.file("broker.db"), outbox.fence()};
  Relay relay{outbox,
              broker,
              {.lease_ttl = 300ms,
               .lease_renew = 50ms,
               .heartbeat_ttl = 400ms,
               .idle_backoff = 10ms,
               .publish_timeout = 200ms}};
};

TEST_F(OlderWriterWithARelay, IsRefusedAtTheNextMessage) {
  relay.run_once();
  upgrade(*newer, shutting_out);
  const Outbox newer_outbox{*newer};
  append(*newer, "order-1", {NewEvent{"placed", 1, true, "{}"}});

  EXPECT_THAT(message_of<SchemaMismatch>([&] { relay.run_once(); }),
              HasSubstr("restart this process with the newer Stela"));
}

TEST_F(OlderWriterWithARelay, IsRefusedThoughNothingWaits) {
  std::stop_source limit;
  int ticks = 0;
  relay.on_tick([&](const RelayTick&) {
    if (++ticks == 1) upgrade(*newer, shutting_out);
    if (ticks == 1'000) limit.request_stop();
  });

  EXPECT_THAT(message_of<SchemaMismatch>([&] { relay.run(limit.get_token()); }),
              HasSubstr("restart this process with the newer Stela"));
}

}  // namespace
}  // namespace stela::older_writers_test
