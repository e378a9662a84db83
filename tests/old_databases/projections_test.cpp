// Projectors that were left behind: they go on, and end with what the events say.
#include "old_databases/files.hpp"
#include "support/histories.hpp"
#include "support/soundness.hpp"

#include <stela/eventstore/transfer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace stela::test::old::projections_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// All that the application of `projected` had, none of which fails any more.
void add_rest(Projections& projections) {
  projections.add(Listing<Live>{});
  projections.add(Listing<Stopped>{});
  projections.add(Listing<Killed>{});
  projections.add(Listing<Halted>{}, {.max_attempts = 1});
  projections.add(Listing<Parking>{}, {.on_error = OnError::park, .max_attempts = 1});
  projections.add_reaction(Reserve{}, {.start = ReactionStart::beginning});
}

std::vector<std::string> rows_of(Store& store, std::string_view projector) {
  std::vector<std::string> lines;
  for (const Row row :
       ModelReader{store}.query("SELECT * FROM " + std::string{projector} + " ORDER BY id")) {
    lines.push_back(row.get<std::string>("id") + ' ' + row.get<std::string>("customer") + ' ' +
                    std::to_string(row.get<int>("cents")) + ' ' +
                    std::to_string(row.get<int>("notes")) + ' ' +
                    row.get<std::optional<std::string>>("carrier").value_or("-"));
  }
  return lines;
}

class OldProjections : public ::testing::Test {
 protected:
  OldProjections() { add_rest(projections); }

  void catch_up() {
    Runner runner{projections};
    for (int round = 0; round < 3; ++round) {
      opened.clock.advance(1h);
      runner.run_once();
    }
  }
  std::string state_of(std::string_view projector) {
    std::string text;
    for (const auto& one : ProjectionOperations{store}.status()) {
      if (one.name != projector) continue;
      if (!text.empty()) text += ", ";
      text += std::string{to_string(one.state)} + (one.stopped ? " halted" : "");
    }
    return text;
  }
  /// What the projectors make of the same events from the beginning.
  std::vector<std::string> expected() {
    std::stringstream events;
    export_events(store, events);
    auto fresh = sqlite::open_in_memory();
    import_events(fresh, events);
    Projections made{fresh};
    made.add(Listing<Live>{});
    Runner{made}.run_once();
    return rows_of(fresh, Live::text);
  }

  const Copy copy{"0.1.0/projected"};
  Opened opened{copy.path()};
  Store& store = opened.store;
  Projections& projections = *opened.projections;
};

TEST_F(OldProjections, AreAsTheyWereLeft) {
  EXPECT_EQ(state_of("live"), "retired, living, scratch");
  EXPECT_EQ(state_of("stopped"), "living, building halted");
  EXPECT_EQ(state_of("killed"), "living, building");
  EXPECT_EQ(state_of("halted"), "living halted");
  EXPECT_EQ(state_of("within"), "living");
  EXPECT_EQ(state_of("reserve"), "living");
}

TEST_F(OldProjections, FollowNewEvents) {
  place(store, "new2");
  ship(store, "new2");

  catch_up();

  for (const std::string_view projector : {"live", "stopped", "killed", "within"}) {
    EXPECT_EQ(rows_of(store, projector), expected()) << projector;
  }
  EXPECT_EQ(state_of("live"), "living, scratch") << "the retired tables are dropped";
  EXPECT_THAT(problems_of(store), IsEmpty());
}

TEST_F(OldProjections, ResumeRebuildsThatWereInterrupted) {
  place(store, "new2");
  opened.clock.advance(1h);
  for (const std::string_view projector : {Stopped::text, Killed::text}) {
    const ReplayResult result = Replayer{projections}.run({.projectors = {std::string{projector}}});

    EXPECT_TRUE(result.is_complete) << projector;
    EXPECT_TRUE(result.was_resumed) << projector;
    EXPECT_EQ(rows_of(store, projector), expected()) << projector;
  }
  EXPECT_EQ(state_of("stopped"), "retired, living");
}

TEST_F(OldProjections, RetryTheFailingEvent) {
  ProjectionOperations{store}.retry(Halted::text);

  catch_up();

  EXPECT_EQ(state_of("halted"), "living");
  EXPECT_EQ(rows_of(store, Halted::text), expected());
}

TEST_F(OldProjections, RetryParkedEventsOnRequest) {
  std::vector<ParkedEventState> before;
  for (const auto& event : ProjectionOperations{store}.parked(Parking::text))
    before.push_back(event.state);
  ProjectionOperations{store}.retry(
      Parking::text, ProjectionOperations{store}.parked(Parking::text).front().sequence);

  catch_up();

  std::vector<ParkedEventState> after;
  for (const auto& event : ProjectionOperations{store}.parked(Parking::text))
    after.push_back(event.state);
  EXPECT_THAT(before, ElementsAre(ParkedEventState::parked, ParkedEventState::skipped,
                                  ParkedEventState::retry));
  EXPECT_THAT(after, ElementsAre(ParkedEventState::skipped));
  EXPECT_EQ(rows_of(store, Parking::text).size() + 1, expected().size());
}

TEST_F(OldProjections, ReactToFailedAndLaterEvents) {
  const std::int64_t left = Repository<Stock>{store}.load(Id<Stock>::from("shelf")).state().left;

  catch_up();

  for (const auto& one : ProjectionOperations{store}.status()) {
    if (one.name == "reserve") {
      EXPECT_EQ(one.lag_events, 0);
    }
  }
  EXPECT_EQ(Repository<Stock>{store}.load(Id<Stock>::from("shelf")).state().left, left - 3)
      << "of the orders 4 to 6";
}

TEST_F(OldProjections, ReplayIntoTheirScratchTablesAgain) {
  opened.clock.advance(1h);
  ProjectionOperations{store}.drop_replay(Live::text);

  const ReplayResult result = Replayer{projections}.run(
      {.projectors = {std::string{Live::text}}, .filter = {.streams = {"order-new1"}}});

  EXPECT_TRUE(result.is_complete);
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT count(*) FROM \"" +
                                          result.models.at(0).table("live") + '"'),
            1);
}

}  // namespace
}  // namespace stela::test::old::projections_test
