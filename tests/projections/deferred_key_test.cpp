// Foreign keys that only the commit checks: a projector gets none, and a table that was made
// elsewhere stops whatever breaks its key.
#include "projections/alarms.hpp"
#include "projections/models.hpp"
#include "support/messages.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace stela::deferred_key_test {
namespace {

using test::place;
using test::standing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// An order refers to its customer.
class Family {
 public:
  static constexpr ProjectorType projector_type{"family", 1};
  using Events = EventSet<test::OrderPlaced, test::OrderShipped>;

  explicit Family(std::string key) : key_{std::move(key)} {}

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {parents} (name TEXT PRIMARY KEY)");
    model.execute("CREATE TABLE {children} (name TEXT CONSTRAINT parent REFERENCES {parents} " +
                  key_ + ")");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {parents} VALUES (?1)", e.stream().key());
  }
  void project(ReadModel& model, const Recorded<test::OrderShipped>& e) {
    model.execute("DELETE FROM {parents} WHERE name = ?1", e.stream().key());
  }

 private:
  std::string key_;
};

class DeferredKey : public ::testing::Test {
 protected:
  /// By another program.
  std::vector<std::string> rows(const std::string& sql) {
    return test::is_on_postgres() ? test::run_on_postgres(path_, sql)
                                  : test::RawSqlite{path_}.rows(sql);
  }

  testing::ManualClock clock_;
  test::TempDir dir_ = test::TempDir::in_memory();
  std::string path_ = dir_.file("a.db");
  Store store_ = test::open_at(path_, {.clock = &clock_});
  Projections projections_{store_};
};

TEST_F(DeferredKey, IsRefusedByNameWhereAProjectorMakesItsTables) {
  const Family family{"DEFERRABLE INITIALLY DEFERRED"};
  const auto refusal =
      AllOf(HasSubstr("projector 'family' v1"), HasSubstr("{children}"),
            HasSubstr(test::is_on_postgres() ? "constraint 'parent'"
                                             : "CONSTRAINT parent REFERENCES {parents}"),
            HasSubstr("declare it INITIALLY IMMEDIATE, or leave it out"));

  EXPECT_THAT(test::message_of<UsageError>([&] { projections_.add(family); }), refusal);
  EXPECT_THAT(test::message_of<UsageError>([&] { projections_.add_inline(family); }), refusal);

  EXPECT_THAT(standing(store_), IsEmpty());
  projections_.add(Family{"DEFERRABLE INITIALLY IMMEDIATE"});
}

TEST_F(DeferredKey, OfAnotherTableStopsTheProjectorThatBreaksIt) {
  projections_.add(Family{""}, {.on_error = OnError::park, .max_attempts = 1});
  projections_.add(test::Counts{});
  rows(test::is_on_postgres()
           ? "DO $$ BEGIN EXECUTE format('CREATE TABLE visits (of TEXT REFERENCES %I.parents "
             "DEFERRABLE INITIALLY DEFERRED)', current_schema() || '/family@1'); END $$"
           : "CREATE TABLE visits (of TEXT REFERENCES \"family@1.parents\" DEFERRABLE INITIALLY "
             "DEFERRED)");
  place(store_, "1");
  Runner runner{projections_};
  runner.run_once();
  rows("INSERT INTO visits VALUES ('1')");
  place(store_, "2");
  test::ship(store_, "1");

  runner.run_once();

  EXPECT_THAT(standing(store_),
              ElementsAre("counts@1 v1 living 3", "family@1 v1 living 1 stopped"));
  EXPECT_THAT(ProjectionOperations{store_}.status().at(1).error,
              ::testing::ContainsRegex("a deferred FOREIGN KEY|violates foreign key constraint"));
  rows("DELETE FROM visits");
  ProjectionOperations{store_}.retry("family");
  runner.run_once();
  EXPECT_EQ(standing(store_).back(), "family@1 v1 living 3");
}

void write_orphan(Transaction& transaction) {
  Sql{transaction}.execute("INSERT INTO children VALUES (1, 7)");
}

/// Writes a child without a parent.
class Orphans {
 public:
  static constexpr ReactionType reaction_type{"orphans"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    if (placed->total_cents == 200) unit.in_transaction(write_orphan);
  }
};

/// The same, when its timer is due.
class LateOrphans {
 public:
  static constexpr ProcessType process_type{"late_orphans"};
  using Events = EventSet<test::AlarmSet>;
  using Timers = TimerSet<test::Ring>;

  void react(stela::Process& process, const Recorded<test::AlarmSet>& e) {
    process.set(test::Ring{e->due}, Timestamp{std::chrono::microseconds{e->due}});
  }
  void due(stela::Process& process, const test::Ring&) {
    process.unit().in_transaction(write_orphan);
  }
};

class DeferredKeyOfTheApplication : public DeferredKey {
 protected:
  DeferredKeyOfTheApplication() {
    rows(
        "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES children "
        "DEFERRABLE INITIALLY DEFERRED)");
  }
  std::vector<std::string> children() { return rows("SELECT id FROM children"); }
};

TEST_F(DeferredKeyOfTheApplication, StopsTheReactionThatBreaksIt) {
  projections_.add_reaction(Orphans{}, {.handling = {.max_attempts = 1}});
  projections_.add(test::Counts{});
  place(store_, "1", 100);
  place(store_, "2", 200);

  Runner{projections_}.run_once();

  EXPECT_THAT(standing(store_),
              ElementsAre("counts@1 v1 living 2", "orphans@1 v1 living 0 stopped"));
  EXPECT_THAT(ProjectionOperations{store_}.status().at(1).error,
              ::testing::ContainsRegex("a deferred FOREIGN KEY|violates foreign key constraint"));
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(DeferredKeyOfTheApplication, StopsTheProcessWhoseTimerBreaksIt) {
  projections_.add_process(LateOrphans{});
  test::append_alarm(store_, 1, test::AlarmSet{test::micros(clock_.now())});
  clock_.advance(std::chrono::seconds{1});

  Runner{projections_}.run_once();

  ASSERT_TRUE(ProjectionOperations{store_}.status().at(0).stopped);
  EXPECT_THAT(ProjectionOperations{store_}.status().at(0).error,
              ::testing::ContainsRegex("a deferred FOREIGN KEY|violates foreign key constraint"));
  EXPECT_THAT(children(), IsEmpty());
}

}  // namespace
}  // namespace stela::deferred_key_test
