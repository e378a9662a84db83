// For those who keep their state in tables of their own: an event without an aggregate, beside the
// caller's SQL.
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::test::own_rows_test {
namespace {

class OwnRows : public ::testing::Test {
 protected:
  OwnRows() { raw.run("CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER) STRICT"); }

  /// An order's row and its event in one transaction; `fails`: something else goes wrong there.
  void place(const std::string& id, ExpectedVersion expected, bool fails = false) {
    UnitOfWork unit{*store};
    unit.append(StreamId::of("order", id), expected, OrderPlaced{"jane", 100});
    unit.in_transaction([&](Transaction& transaction) {
      RawSqlite{sqlite::handle(transaction)}.run("INSERT INTO orders VALUES ('" + id + "', 100)");
      if (fails) throw std::runtime_error{"no"};
    });
    unit.commit();
  }
  /// "orders, events, messages".
  std::string counts() {
    return raw.rows(
        "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM events), "
        "(SELECT count(*) FROM outbox_messages)")[0];
  }

  TempDir dir;
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> store = open_store(path);
  Outbox outbox{*store};
  RawSqlite raw{path};
};

TEST_F(OwnRows, CommitWithTheirMessages) {
  place("1", ExpectedVersion::none());
  place("2", ExpectedVersion::none());

  EXPECT_EQ(counts(), "2|2|2");
}

TEST_F(OwnRows, RollBackWithTheirMessages) {
  EXPECT_THROW(place("1", ExpectedVersion::none(), true), std::runtime_error);

  EXPECT_EQ(counts(), "0|0|0");
  place("1", ExpectedVersion::none());
  EXPECT_EQ(counts(), "1|1|1");
}

TEST_F(OwnRows, RollBackWithAnAppendThatLostARace) {
  append(*store, "order-1");

  EXPECT_THROW(place("1", ExpectedVersion::none()), ConcurrencyConflict);
  EXPECT_EQ(counts(), "0|1|0");
}

TEST_F(OwnRows, RollBackTheirMessagesWhenTheyAreRefused) {
  place("1", ExpectedVersion::none());

  EXPECT_THROW(place("1", ExpectedVersion::any()), std::runtime_error);
  EXPECT_EQ(counts(), "1|1|1");
}

}  // namespace
}  // namespace stela::test::own_rows_test
