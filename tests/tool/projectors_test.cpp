// What the tool says of projectors that are stopped.
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace stela::test::projectors_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// Version 2 has one more table; version 3 has a handler that fails.
template <int version>
class Tally {
 public:
  static constexpr ProjectorType projector_type{"tally", version};
  using Events = EventSet<OrderPlaced>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {tally} (n)");
    if (version == 2) model.execute("CREATE TABLE {extra} (n)");
  }
  void project(ReadModel& model, const Recorded<OrderPlaced>&) {
    if (version == 3) throw std::runtime_error{"can't take it"};
    model.execute("INSERT INTO {tally} VALUES (1)");
  }
};

class HaltedProjector : public ::testing::Test {
 protected:
  HaltedProjector() {
    Projections projections{store_};
    projections.add(Tally<1>{});
    auto order = Order::place(Id<Order>::from("1"), "jane", 100);
    Repository<Order>{store_}.save(order);
    Runner{projections}.run_once();
  }
  Ran tool(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--db", db_});
    return run(arguments);
  }

  TempDir dir_;
  const std::string db_ = dir_.file("shop.db");
  Store store_ = sqlite::open(db_);
};

TEST_F(HaltedProjector, IsShownWithItsReasonAndResumesAsAdvised) {
  Projections projections{store_};
  projections.add(Tally<2>{});
  RawSqlite{db_}.run("CREATE TABLE extra (other)");
  Runner runner{projections};
  EXPECT_EQ(runner.run_once().stopped, 1);

  EXPECT_THAT(tool({"projections", "status"}).out,
              AllOf(HasSubstr("stopped: "), HasSubstr("extra")));
  const Ran doctor = tool({"doctor"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out,
              AllOf(HasSubstr("projector 'tally' v2 (building) is stopped: "), HasSubstr("extra"),
                    HasSubstr("projections retry tally'"), Not(HasSubstr("skip"))));

  RawSqlite{db_}.run("DROP TABLE extra");
  EXPECT_EQ(tool({"projections", "retry", "tally"}).code, 0);
  EXPECT_EQ(runner.run_once().taken_over, 1);
  EXPECT_THAT(tool({"doctor"}).out, Not(HasSubstr("stopped")));
}

TEST_F(HaltedProjector, IsNamedByDoctorWithItsEvent) {
  Projections projections{store_};
  projections.add(Tally<3>{});
  Runner{projections}.run_once();

  EXPECT_THAT(tool({"doctor"}).out,
              AllOf(HasSubstr("projector 'tally' v3 (building) is stopped at event 1: "),
                    HasSubstr("projections skip tally 1' skips the event")));
}

TEST_F(HaltedProjector, ThatOnlyWaitsForANewerReleaseIsToldFromOneThatFails) {
  append(store_, "order-2", {NewEvent{"order.placed", 9, false, "{}"}});
  Projections projections{store_};
  projections.add(Tally<1>{});
  Runner{projections}.run_once();

  EXPECT_THAT(tool({"projections", "status"}).out,
              HasSubstr("waiting at 2: event 2 (order.placed v9"));
  const Ran doctor = tool({"doctor"});
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("projector 'tally' v1 waits at event 2: "),
                                HasSubstr("run a release that knows the version")));
  EXPECT_THAT(tool({"projections", "list"}).out, Not(HasSubstr("tally")));

  EXPECT_EQ(tool({"projections", "retry", "tally"}).code, 0);
  EXPECT_EQ((Runner{projections, {.unknown_version_wait = std::chrono::milliseconds{0}}}
                 .run_once()
                 .stopped),
            1);
  EXPECT_THAT(tool({"doctor"}).out,
              AllOf(HasSubstr("projector 'tally' v1 is stopped at event 2: "),
                    HasSubstr("run a release that knows the version, which continues by itself")));
}

TEST_F(HaltedProjector, IsCriticalAsIsOneThatNoRunnerDrives) {
  EXPECT_EQ(tool({"projections", "check"}).code, 0);
  append(store_, "order-2",
         {NewEvent{"order.placed", 1, false, R"({"customer":"joe","cents":1})"}});
  const Ran unattended = tool({"projections", "check"});
  EXPECT_EQ(unattended.code, 2);
  EXPECT_THAT(unattended.out, HasSubstr("projector 'tally' v1 is 1 event behind"));
  EXPECT_EQ(tool({"projections", "check", "--max-unattended", "1"}).code, 0);
  EXPECT_EQ(tool({"projections", "check", "--max-unattended", "1", "--warn-lag", "0s"}).code, 1);

  Projections projections{store_};
  projections.add(Tally<3>{});
  Runner{projections}.run_once();
  const Ran stopped = tool({"projections", "check", "--max-unattended", "1"});
  EXPECT_EQ(stopped.code, 2);
  EXPECT_THAT(stopped.out, AllOf(HasSubstr("projector 'tally' v3 (building) is stopped at event 1"),
                                 HasSubstr("can't take it")));
  EXPECT_EQ(tool({"projections", "check", "--max-lag", "soon"}).code, 3);
}

TEST_F(HaltedProjector, ListsTheEventsThatWaitForAnOperator) {
  append(store_, "order-2", {NewEvent{"order.placed", 9, false, "{}"}});
  append(store_, "order-3", {NewEvent{"order.placed", 9, false, "{}"}});
  Projections projections{store_};
  projections.add(Tally<1>{}, {.on_error = OnError::park, .max_attempts = 1});
  Runner{projections, {.unknown_version_wait = std::chrono::milliseconds{0}}}.run_once();

  const std::string listed = tool({"projections", "list", "tally"}).out;
  EXPECT_THAT(listed, AllOf(ContainsRegex("tally +2 +parked"), ContainsRegex("tally +3 +parked"),
                            HasSubstr("event 3 (order.placed v9")));
  EXPECT_THAT(tool({"projections", "list", "--limit", "1"}).out, Not(HasSubstr("event 3")));

  EXPECT_EQ(tool({"projections", "retry", "tally", "3"}).code, 0);
  EXPECT_EQ(tool({"projections", "skip", "tally", "2", "--yes"}).code, 0);
  EXPECT_THAT(tool({"projections", "list"}).out,
              AllOf(ContainsRegex("tally +3 +to be retried"), Not(HasSubstr("event 2"))));
  const Ran unknown = tool({"projections", "list", "nobody"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("nobody"));
}

TEST_F(HaltedProjector, ListsParkedEventsFromEitherEnd) {
  for (const char* const stream : {"order-2", "order-3", "order-4"}) {
    append(store_, stream, {NewEvent{"order.placed", 9, false, "{}"}});
  }
  Projections projections{store_};
  projections.add(Tally<1>{}, {.on_error = OnError::park, .max_attempts = 1});
  Runner{projections, {.unknown_version_wait = std::chrono::milliseconds{0}}}.run_once();
  const auto listed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"projections", "list", "--json"});
    std::string sequences;
    for (const std::string& line : lines_of(tool(words).out)) {
      sequences += member(line, "sequence") + ' ';
    }
    return sequences;
  };

  EXPECT_EQ(listed({}), "2 3 4 ");
  EXPECT_EQ(listed({"--newest-first"}), "4 3 2 ");
  EXPECT_EQ(tool({"projections", "list", "--limit", "2"}).err, "more: --after tally@1/3\n");
  EXPECT_EQ(listed({"--after", "tally@1/3"}), "4 ");
  EXPECT_EQ(listed({"--after", "tally@1/3", "--newest-first"}), "2 ");
  EXPECT_EQ(listed({"--type", "order.placed", "--limit", "1"}), "2 ");
  EXPECT_EQ(listed({"--type", "order.shipped"}), "");
  EXPECT_EQ(listed({"--since", "1h"}), "2 3 4 ");
  EXPECT_EQ(listed({"--until", "1h"}), "");
  EXPECT_EQ(tool({"projections", "list", "--after", "3"}).code, 2);
}

}  // namespace
}  // namespace stela::test::projectors_test
