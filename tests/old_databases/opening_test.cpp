// What holds for every old database: it is read, migrated, sound, and goes on.
#include "old_databases/files.hpp"
#include "schema/modules.hpp"
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "tool/program.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/outbox/care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

namespace stela::test::old::opening_test {
namespace {

using ::testing::IsEmpty;

class OldDatabase : public ::testing::TestWithParam<std::string> {
 protected:
  const Copy copy{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(, OldDatabase, ::testing::ValuesIn(databases()), [](const auto& one) {
  std::string name = one.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return "V" + name;
});

std::vector<std::string> problems_in(Store& store) {
  const auto check = outbox_check();
  IntegrityCheck* const checks[] = {check.get()};
  return problems_of(store, {.thorough = true, .checks = checks});
}

std::string exported(Store& store) {
  std::ostringstream out;
  export_events(store, out);
  return out.str();
}

/// Opens it with every module, so that each makes or migrates its tables.
void migrate_all(const std::string& path) {
  auto store = sqlite::open(path);
  const Outbox outbox{store, {.enable = Enable::from_now}};
  const Projections projections{store};
  const nats::Consumer consumer{store, {.name = "anybody"}};
}

/// All that Stela made, but not the tables and views of applications and their projectors.
std::vector<std::string> schema_of(const std::string& path) {
  return RawSqlite{path}.rows(
      "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type <> 'view' AND "
      "tbl_name NOT LIKE '%@%' AND tbl_name <> 'ledger' ORDER BY type, name");
}

TEST_P(OldDatabase, IsSoundForTheToolBeforeAnythingElseOpensIt) {
  const Ran ran = run({"verify", "--db", copy.path(), "--thorough"});

  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

TEST_P(OldDatabase, IsSoundOnceItIsMigrated) {
  migrate_all(copy.path());
  auto store = sqlite::open(copy.path());

  EXPECT_THAT(problems_in(store), IsEmpty());
}

TEST_P(OldDatabase, EndsWithTheSchemaOfAFreshOne) {
  const TempDir dir = TempDir::in_memory();
  migrate_all(dir.file("fresh.db"));

  migrate_all(copy.path());

  EXPECT_EQ(schema_of(copy.path()), schema_of(dir.file("fresh.db")));
}

TEST_P(OldDatabase, ExportsTheBytesThatItExportedThen) {
  auto store = sqlite::open(copy.path());

  EXPECT_EQ(exported(store), text_of(export_of(GetParam())));
}

TEST_P(OldDatabase, IsMadeAgainByItsExport) {
  auto old_store = sqlite::open(copy.path());
  const TempDir dir = TempDir::in_memory();
  auto store = sqlite::open(dir.file("new.db"), {.codec = old_store.conventions().codec});
  std::ifstream in{export_of(GetParam())};

  import_events(store, in);

  EXPECT_EQ(full_lines(store.read_all()), full_lines(old_store.read_all()));
  EXPECT_THAT(problems_in(store), IsEmpty());
}

TEST_P(OldDatabase, LoadsEachAggregateAndSavesMore) {
  Opened opened{copy.path()};
  std::set<StreamId> streams;
  for (const StoredEvent& event : opened.store.read_all()) streams.insert(event.stream);

  for (const StreamId& stream : streams) {
    if (stream.category() == Stock::category) {
      Repository<Stock> stocks{opened.store};
      Stock stock = stocks.load(Id<Stock>::of(stream));
      const std::int64_t left = stock.state().left;
      stock.move(-1);
      stocks.save(stock);
      EXPECT_EQ(stocks.load(Id<Stock>::of(stream)).state().left, left - 1);
    } else {
      Repository<Order> orders{opened.store};
      Order order = orders.load(Id<Order>::of(stream));
      EXPECT_NE(order.state().currency, "") << "an old order is read as a new one";
      const std::int64_t notes = order.state().notes;
      order.note("still there");
      orders.save(order);
      EXPECT_EQ(orders.load(Id<Order>::of(stream)).state().notes, notes + 1);
    }
  }
  EXPECT_THAT(problems_in(opened.store), IsEmpty());
}

TEST(OldEvents, AreLoadedFromTheirSnapshots) {
  const Copy copy{"0.1.0/plain"};
  Opened opened{copy.path()};

  const Stock stock = Repository<Stock>{opened.store}.load(Id<Stock>::from("shelf"));

  EXPECT_EQ(stock.version(), StreamVersion{5});
  EXPECT_EQ(stock.state().left, 82);
  EXPECT_EQ(stock.state().applied, 1) << "the snapshot has the first four";
}

TEST(OldEvents, AreUpcastAndKeepTheirContext) {
  const Copy copy{"0.1.0/plain"};
  Opened opened{copy.path()};
  Repository<Order> orders{opened.store};

  const Order entered = orders.load(Id<Order>::from("old1"));

  EXPECT_EQ(entered.state().customer, "zoë");
  EXPECT_EQ(entered.state().currency, "EUR");
  EXPECT_EQ(entered.state().carrier, "dhl");
  for (const StoredEvent& event : opened.store.read_stream(StreamId::parse("order-new1"))) {
    EXPECT_EQ(event.context().correlation_id, "checkout-7");
    EXPECT_EQ(event.context().headers.at("tenant"), "50 %");
  }
}

TEST(OldEvents, AreFoundByTheirAppendId) {
  const Copy copy{"0.1.0/plain"};
  Opened opened{copy.path()};
  const GlobalSequence last = opened.store.last_sequence();
  Order order{Id<Order>::from("once")};
  order.place("jane", 1);

  Repository<Order>{opened.store}.save(order, {.append_id = "request-17"});

  EXPECT_EQ(opened.store.last_sequence(), last);
}

}  // namespace
}  // namespace stela::test::old::opening_test
