// The ledger of migrations: what it says, and what becomes of a database whose ledger says
// something else.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/outbox/outbox.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::test::ledger_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Ledger : public ::testing::Test {
 protected:
  Ledger() { append(*open_store(path, {.clock = &clock}), "order-1"); }

  std::string refusal() {
    return message_of<SchemaMismatch>([&] { open_store(path); });
  }

  TempDir dir;
  testing::ManualClock clock;
  const std::string path = dir.file("shop.db");
};

TEST_F(Ledger, SaysWhichMigrationsADatabaseHad) {
  RawSqlite raw{path};

  EXPECT_THAT(raw.rows("SELECT module, number, name, length(checksum), applied_at "
                       "FROM stela_migrations ORDER BY module, number"),
              ElementsAre("eventstore|1|events|16|1767225600000000"));
  EXPECT_EQ(raw.integer("PRAGMA user_version"), 0) << "that is the application's";
  EXPECT_EQ(raw.integer("PRAGMA application_id"), 0x5354454c);
}

TEST_F(Ledger, IsLeftAloneByASecondOpening) {
  const auto before = RawSqlite{path}.rows("SELECT * FROM stela_migrations");
  clock.advance(std::chrono::hours{1});
  open_store(path, {.clock = &clock});

  EXPECT_EQ(RawSqlite{path}.rows("SELECT * FROM stela_migrations"), before);
}

TEST_F(Ledger, OfAnotherTextIsRefused) {
  RawSqlite{path}.run("UPDATE stela_migrations SET checksum = '0123456789abcdef'");

  EXPECT_THAT(refusal(), AllOf(HasSubstr("migration 1 of 'eventstore'"),
                               HasSubstr("the database is left as it is")));
  EXPECT_EQ(RawSqlite{path}.integer("SELECT count(*) FROM events"), 1);
}

TEST_F(Ledger, OfANewerStelaIsRefused) {
  RawSqlite{path}.run(
      "INSERT INTO stela_migrations VALUES ('eventstore', 99, 'wings', '0123456789abcdef', 0)");

  EXPECT_THAT(refusal(), AllOf(HasSubstr("newer Stela"), HasSubstr("'wings'")));
  EXPECT_EQ(RawSqlite{path}.integer("SELECT count(*) FROM events"), 1);
}

TEST_F(Ledger, NotesNoModuleWhoseNamesTheApplicationHas) {
  RawSqlite raw{path};
  raw.run("CREATE TABLE Outbox_Messages (x)");
  const auto before = raw.rows("SELECT * FROM sqlite_schema");
  const auto store = open_store(path);

  EXPECT_THAT(message_of<SchemaMismatch>([&] { Outbox{*store}; }),
              AllOf(HasSubstr("the tables of 'outbox' need: 'Outbox_Messages';"),
                    HasSubstr("nothing was changed")));
  EXPECT_EQ(raw.rows("SELECT * FROM sqlite_schema"), before);
  EXPECT_EQ(raw.integer("SELECT count(*) FROM stela_migrations WHERE module = 'outbox'"), 0);
}

TEST_F(Ledger, OfAModuleThatThisProcessLacksIsNoObstacle) {
  RawSqlite{path}.run("INSERT INTO stela_migrations VALUES ('wings', 1, 'feathers', '0', 0)");

  EXPECT_NO_THROW(append(*open_store(path), "order-1"));
}

}  // namespace
}  // namespace stela::test::ledger_test
