#include "projections/models.hpp"
#include "support/random_history.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::replay_test {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::note;
using test::orders_in;
using test::place;
using test::ship;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> scratch(Store& store, const ReplayResult& result) {
  return test::lines(ModelReader{store}.query(
      "SELECT * FROM \"" + result.models.at(0).table("orders") + "\" ORDER BY id"));
}

/// Three orders in three days; the last of the seven events ships the second order.
class Replay : public ::testing::Test {
 protected:
  Replay() {
    projections_.add(Totals<1>{[this](ReadModel&, const StoredEvent& event) {
      if (on_event_) on_event_(event);
    }});
    for (const char* const key : {"1", "2", "3"}) {
      place(store_, key);
      note(store_, key);
      clock_.advance(24h);
    }
    ship(store_, "2");
    Runner{projections_}.run_once();
  }

  testing::ManualClock clock_;
  Store store_ = test::open_empty({.clock = &clock_});
  std::function<void(const StoredEvent&)> on_event_;
  Projections projections_{store_};
  Replayer replayer_{projections_};
};

TEST_F(Replay, FillsItsOwnTablesWithFilteredEvents) {
  const auto living = orders_in(store_);
  const auto replayed = [&](const ReplayFilter& filter) {
    const ReplayResult result = replayer_.run({.filter = filter});
    EXPECT_TRUE(result.is_complete);
    return scratch(store_, result);
  };

  EXPECT_THAT(replayed({.streams = {"order-2"}}), ElementsAre("2 jane 100 1 dhl"));
  EXPECT_THAT(replayed({.event_types = {"order.placed"}}),
              ElementsAre("1 jane 100 0 -", "2 jane 100 0 -", "3 jane 100 0 -"));
  EXPECT_THAT(replayed({.categories = {"stock"}}), IsEmpty());
  EXPECT_THAT(replayed({.from = GlobalSequence{3}, .to = GlobalSequence{5}}),
              ElementsAre("2 jane 100 1 -", "3 jane 100 0 -"));
  EXPECT_THAT(replayed({.since = testing::ManualClock::start + 12h,
                        .until = testing::ManualClock::start + 36h}),
              ElementsAre("2 jane 100 1 -"));
  EXPECT_EQ(orders_in(store_), living);
}

TEST_F(Replay, LeavesTheLiveCheckpointUnchanged) {
  replayer_.run({.filter = {.to = GlobalSequence{3}}});

  EXPECT_THAT(standing(store_), ElementsAre("totals@1 v1 living 7", "totals@2 v1 scratch 3"));
  ProjectionOperations{store_}.drop_replay("totals");
  EXPECT_THAT(standing(store_), ElementsAre("totals@1 v1 living 7"));
}

TEST_F(Replay, CountsInADryRunAndWritesNothing) {
  std::vector<std::string> counts;
  for (const EventTypeCount& one : replayer_.dry_run({.streams = {"order-1", "order-2"}})) {
    counts.push_back(one.type + ' ' + std::to_string(one.events));
  }

  EXPECT_THAT(counts, ElementsAre("order.noted 2", "order.placed 2", "order.shipped 1"));
  EXPECT_THAT(standing(store_), ElementsAre("totals@1 v1 living 7"));
}

TEST_F(Replay, IsKnownToHandlersWithTheOriginalTimes) {
  std::vector<std::string> seen;
  on_event_ = [&](const StoredEvent& event) {
    seen.push_back(to_string(event.recorded_at).substr(0, 10) +
                   (is_replaying() ? " replaying" : " living"));
  };
  replayer_.run({.filter = {.event_types = {"order.placed"}}});
  place(store_, "4");
  Runner{projections_}.run_once();

  EXPECT_THAT(seen, ElementsAre("2026-01-01 replaying", "2026-01-02 replaying",
                                "2026-01-03 replaying", "2026-01-04 living"));
}

TEST_F(Replay, RefusesEventsOfAHandlerAndAllowsThemAfterwards) {
  auto other = test::open_empty();
  on_event_ = [&](const StoredEvent&) { place(other, "new"); };

  EXPECT_THAT(test::message_of<UsageError>([&] { replayer_.run({}); }),
              HasSubstr("records an event inside a replay"));
  EXPECT_EQ(other.last_sequence(), GlobalSequence{0});
  EXPECT_FALSE(is_replaying());
  on_event_ = {};
  place(other, "new");
  EXPECT_EQ(other.last_sequence(), GlobalSequence{1});
}

TEST_F(Replay, TellsHowFarItIs) {
  std::vector<std::string> told;
  replayer_.run(
      {.filter = {.from = GlobalSequence{4}}, .on_progress = [&](const ReplayProgress& at) {
         told.push_back(std::to_string(at.done) + " of " + std::to_string(at.total) + ", " +
                        std::to_string(static_cast<int>(at.percent)) + '%');
         EXPECT_TRUE(at.time_left.has_value());
       }});

  EXPECT_THAT(told, ElementsAre("4 of 4, 100%"));
}

TEST_F(Replay, ContinuesWhereItWasCancelled) {
  test::append(store_, "other-1", 5000);
  std::stop_source stop;
  const ReplayFilter filter{.since = testing::ManualClock::start};
  std::int64_t seen = 0;
  on_event_ = [&](const StoredEvent&) { ++seen; };
  const ReplayResult first = replayer_.run(
      {.filter = filter, .on_progress = [&](const ReplayProgress&) { stop.request_stop(); }},
      stop.get_token());
  const std::int64_t stopped_at = first.models.at(0).position.value();
  const ReplayResult second = replayer_.run({.filter = filter});

  EXPECT_FALSE(first.is_complete);
  EXPECT_LT(stopped_at, 5007);
  EXPECT_TRUE(second.was_resumed);
  EXPECT_TRUE(second.is_complete);
  EXPECT_EQ(seen, 7) << "each event once";
  EXPECT_EQ(scratch(store_, second), orders_in(store_));
}

TEST_F(Replay, StartsAgainWithAnotherFilterOrOnRequest) {
  std::stop_source stopped;
  stopped.request_stop();
  (void)replayer_.run({.filter = {.to = GlobalSequence{6}}}, stopped.get_token());

  EXPECT_FALSE(replayer_.run({.filter = {.to = GlobalSequence{6}}, .restart = true}).was_resumed);
  EXPECT_FALSE(replayer_.run({.filter = {.to = GlobalSequence{5}}}).was_resumed);
  EXPECT_THAT(standing(store_), ElementsAre("totals@1 v1 living 7", "totals@4 v1 scratch 5"));
}

TEST_F(Replay, StopsAtAHandlerThatThrows) {
  const auto living = orders_in(store_);
  on_event_ = [](const StoredEvent& event) {
    if (event.sequence == GlobalSequence{4}) throw std::runtime_error{"no"};
  };

  EXPECT_THAT(
      test::message_of<UsageError>([&] { replayer_.run({.filter = {.to = GlobalSequence{6}}}); }),
      HasSubstr("the replay of projector 'totals' v1 stopped at event 4 (order.noted v1, "
                "version 2 of 'order-2'): no; the living tables are as they were"));
  EXPECT_EQ(orders_in(store_), living);
}

/// Sets what it sees, however often.
class Customers {
 public:
  static constexpr ProjectorType projector_type{"customers", 1};
  static constexpr bool is_idempotent = true;
  using Events = EventSet<test::OrderPlaced>;
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {customers} (name TEXT PRIMARY KEY, at INTEGER NOT NULL)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute(
        "INSERT INTO {customers} VALUES (?1, ?2) "
        "ON CONFLICT (name) DO UPDATE SET at = excluded.at",
        e->customer, e.sequence());
  }
};

TEST_F(Replay, GoesOverLivingTablesOfIdempotentProjectorsOnly) {
  projections_.add(Customers{});
  Runner runner{projections_};
  runner.run_once();
  const ReplayOptions living{
      .projectors = {"customers"}, .filter = {.to = GlobalSequence{1}}, .into = ReplayInto::living};

  (void)replayer_.run(living);

  EXPECT_EQ(ModelReader{store_}.value<int>("SELECT at FROM customers"), 1);
  EXPECT_EQ(ProjectionOperations{store_}.status().at(0).position, GlobalSequence{7});
  ReplayOptions wrong = living;
  wrong.projectors = {"totals"};
  EXPECT_THAT(test::message_of<UsageError>([&] { replayer_.run(wrong); }),
              HasSubstr("'totals' doesn't say that it is idempotent"));
}

TEST_F(Replay, ShutsTheRunnerOutWhileItWritesTheLivingTables) {
  projections_.add(Customers{});
  Runner runner{projections_};
  runner.run_once();
  RunnerTick meanwhile;
  (void)replayer_.run(
      {.projectors = {"customers"},
       .filter = {.to = GlobalSequence{1}},
       .into = ReplayInto::living,
       .on_progress = [&](const ReplayProgress&) { meanwhile = runner.run_once(); }});
  const RunnerTick afterwards = runner.run_once();

  EXPECT_EQ(meanwhile.owned_count, 1) << "totals, but not customers";
  EXPECT_EQ(afterwards.owned_count, 2);
}

/// More customers than events of a page, and replays of their living table.
class LivingReplay : public Replay {
 protected:
  LivingReplay() {
    append_customers(0, 1000);
    runner_.run_once();
  }

  /// Two for each customer, so that an older event may be replayed over a newer one.
  void append_customers(int first, int count) {
    store_.transact([&](Transaction& transaction) {
      Repository<test::Order> orders{transaction};
      for (int i = first; i < first + count; ++i) {
        auto order = test::Order::place(Id<test::Order>::from("c" + std::to_string(i)),
                                        "jo" + std::to_string(i % 100), 1);
        orders.save(order);
      }
    });
  }
  /// Every customer is at the last order.
  std::vector<std::string> customers() {
    return test::lines(ModelReader{store_}.query("SELECT name, at FROM customers ORDER BY name"));
  }
  std::vector<std::string> customers_as_they_should_be() {
    Replayer{projections_}.run({.projectors = {"customers"}});
    return customers();
  }
  ReplayOptions living(std::function<void()> meanwhile = {}) {
    ReplayOptions options{.projectors = {"customers"},
                          .filter = {.since = testing::ManualClock::start},
                          .into = ReplayInto::living};
    if (meanwhile) options.on_progress = [meanwhile](const ReplayProgress&) { meanwhile(); };
    return options;
  }

  Projections& with_customers() {
    projections_.add(Customers{});
    return projections_;
  }

  Runner runner_{with_customers(), {.worker = "short", .lease_ttl = 3s}};
};

TEST_F(LivingReplay, ShutsOutARunnerWithAShorterLease) {
  int looks = 0;
  (void)replayer_.run(living([&] {
    if (++looks > 1) return;
    append_customers(5000, 100);
    EXPECT_EQ(runner_.run_once().elsewhere_count, 1) << "of totals and customers";
  }));
  ASSERT_GT(looks, 1) << "there is something left to replay";
  runner_.run_once();

  const auto replayed = customers();
  EXPECT_EQ(replayed, customers_as_they_should_be());
}

TEST_F(LivingReplay, CommitsNothingOnceItsLeaseIsLost) {
  int looks = 0;
  const std::string refusal = test::message_of<UsageError>([&] {
    (void)replayer_.run(living([&] {
      if (++looks > 1) return;
      // It is paused past its lease, and the runner takes the projector.
      clock_.advance(16s);
      append_customers(5000, 100);
      EXPECT_EQ(runner_.run_once().elsewhere_count, 0);
    }));
  });
  EXPECT_THAT(refusal, HasSubstr("was taken over by another process meanwhile; its living tables "
                                 "are replayed up to event "));
  EXPECT_EQ(looks, 1);

  (void)replayer_.run(living());
  runner_.run_once();
  const auto replayed = customers();
  EXPECT_EQ(replayed, customers_as_they_should_be());
}

/// Can't take an event, once it is told which.
class PickyCustomers : public Customers {
 public:
  explicit PickyCustomers(const std::int64_t& refused) : refused_{refused} {}
  static constexpr ProjectorType projector_type{"picky", 1};
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {picky} (name TEXT PRIMARY KEY, at INTEGER NOT NULL)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    if (e.sequence().value() == refused_) throw std::runtime_error{"no"};
    model.execute(
        "INSERT INTO {picky} VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET at = excluded.at",
        e->customer, e.sequence());
  }

 private:
  const std::int64_t& refused_;
};

TEST_F(LivingReplay, ThatFailsSaysHowFarItWent) {
  std::int64_t refused = 0;
  Projections projections{store_};
  projections.add(PickyCustomers{refused});
  Runner{projections}.run_once();
  const auto read = [&] {
    return test::lines(ModelReader{store_}.query("SELECT name, at FROM picky ORDER BY name"));
  };
  const auto before = read();
  refused = 900;
  ReplayOptions options = living();
  options.projectors = {"picky"};
  Replayer replayer{projections};

  EXPECT_THAT(test::message_of<UsageError>([&] { replayer.run(options); }),
              HasSubstr("no; its living tables are replayed up to event 899 only; mend the handler "
                        "and run it again"));
  EXPECT_NE(read(), before);
  refused = 0;
  EXPECT_TRUE(replayer.run(options).was_resumed);

  EXPECT_EQ(read(), before);
}

TEST_F(LivingReplay, WithAnEndLeavesWhatItTouchedAtThatEnd) {
  ReplayOptions options = living();
  options.filter = {.to = GlobalSequence{107}};
  (void)replayer_.run(options);

  EXPECT_EQ(ModelReader{store_}.value<int>("SELECT at FROM customers WHERE name = 'jo99'"), 107);
  Replayer{projections_}.run({.projectors = {"customers"}});
  EXPECT_EQ(ModelReader{store_}.value<int>("SELECT at FROM customers WHERE name = 'jo99'"), 1007);
}

TEST_F(LivingReplay, EndsAfterWhatTheRunnerProjectedSinceItWasCancelled) {
  std::stop_source stop;
  (void)replayer_.run(living([&] { stop.request_stop(); }), stop.get_token());
  append_customers(5000, 100);
  runner_.run_once();

  const ReplayResult second = replayer_.run(living());

  EXPECT_TRUE(second.was_resumed);
  const auto replayed = customers();
  EXPECT_EQ(replayed, customers_as_they_should_be());
}

class InlineCustomers : public Customers {
 public:
  static constexpr ProjectorType projector_type{"inline_customers", 1};
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {inline_customers} (name TEXT PRIMARY KEY, at INTEGER NOT NULL)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute(
        "INSERT INTO {inline_customers} VALUES (?1, ?2) "
        "ON CONFLICT (name) DO UPDATE SET at = excluded.at",
        e->customer, e.sequence());
  }
};

TEST_F(LivingReplay, OfAnInlineProjectorEndsAfterWhatWasAppendedMeanwhile) {
  projections_.add_inline(InlineCustomers{});
  const auto read = [&] {
    return test::lines(ModelReader{store_}.query("SELECT * FROM inline_customers ORDER BY name"));
  };
  for (const int many : {100, 2000}) {
    int looks = 0;
    ReplayOptions options = living([&] {
      if (++looks == 1) append_customers(5000 * many, many);
    });
    options.projectors = {"inline_customers"};
    (void)replayer_.run(options);

    const auto replayed = read();
    Replayer{projections_}.run({.projectors = {"inline_customers"}});
    EXPECT_EQ(replayed, read()) << many;
  }
}

TEST_F(Replay, NamesImpossibleRequests) {
  const auto running = [&](const ReplayOptions& options) {
    return test::message_of<UsageError>([&] { replayer_.run(options); });
  };
  EXPECT_THAT(running({.projectors = {"nobody"}}), HasSubstr("'nobody' isn't registered"));
  EXPECT_THAT(running({.into = ReplayInto::living}),
              HasSubstr("a replay without a filter is a rebuild"));
}

TEST_F(Replay, DecodedAheadEndsInTheSame) {
  test::append(store_, "other-1", 3000);
  for (int i = 100; i < 1100; ++i) place(store_, std::to_string(i));
  Runner{projections_}.run_once();
  const ReplayFilter everything{.since = testing::ManualClock::start};

  const ReplayResult result = replayer_.run({.filter = everything, .decode_ahead = true});

  EXPECT_EQ(scratch(store_, result), orders_in(store_));
}

TEST_F(Replay, DecodedAheadContinuesAfterAnEventLargerThanAPage) {
  for (int i = 100; i < 700; ++i) place(store_, std::to_string(i));
  ship(store_, "1", std::string(300'000, 'x'));
  for (int i = 100; i < 700; ++i) ship(store_, std::to_string(i), std::string(1000, 'y'));
  Runner{projections_}.run_once();

  const ReplayResult result =
      replayer_.run({.filter = {.since = testing::ManualClock::start}, .decode_ahead = true});

  EXPECT_EQ(scratch(store_, result), orders_in(store_));
}

TEST_F(Replay, DecodedAheadNamesTheEventThatDoesNotDecode) {
  test::append(store_, "order-9", {NewEvent{"order.placed", 1, false, "{}"}});

  EXPECT_THAT(test::message_of<UsageError>([&] {
                replayer_.run({.filter = {.from = GlobalSequence{8}}, .decode_ahead = true});
              }),
              HasSubstr("stopped at event 8"));
}

}  // namespace
}  // namespace stela::replay_test
