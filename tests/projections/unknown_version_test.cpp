// Events of a version that only another release knows: a projector waits for a runner of that
// release.
#include "projections/models.hpp"
#include "support/messages.hpp"
#include "support/process.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::unknown_version_test {
namespace {

using namespace std::chrono_literals;
using test::standing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct PaidV1 {
  static constexpr EventType event_type{"bill.paid", 1, local};
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents));
  }
};

struct Paid {
  static constexpr EventType event_type{"bill.paid", 2, local};
  using Supersedes = PaidV1;
  static Paid upcast(PaidV1 old) { return {old.cents, "EUR"}; }
  std::int64_t cents = 0;
  std::string currency;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(currency));
  }
};

struct Refunded {
  static constexpr EventType event_type{"bill.refunded", 1, local};
  template <class Archive>
  void serialize(Archive&) {}
};

/// What the two releases have in common; `P` is the newest `Paid` that the release knows.
template <class P>
struct Bill {
  struct State {
    std::int64_t cents = 0;
    void apply(const P& paid) { cents += paid.cents; }
    void apply(const Refunded&) { cents = 0; }
  };
  class Root : public AggregateRoot<State, EventSet<P, Refunded>> {
   public:
    static constexpr std::string_view category = "bill";
    using AggregateRoot<State, EventSet<P, Refunded>>::AggregateRoot;
    void refund() { this->record(Refunded{}); }
  };
};

template <class P>
class Payments {
 public:
  static constexpr ProjectorType projector_type{"payments", 1};
  using Events = EventSet<P>;

  explicit Payments(bool* fails = nullptr) : fails_{fails} {}
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {payments} (bill TEXT NOT NULL, cents INTEGER NOT NULL)");
  }
  void project(ReadModel& model, const Recorded<P>& paid) {
    if (fails_ != nullptr && *fails_) throw std::runtime_error{"no"};
    model.execute("INSERT INTO {payments} VALUES (?1, ?2)", paid.stream().key(), paid->cents);
  }

 private:
  bool* fails_;
};

/// Needs no other version than it has.
class Refunds {
 public:
  static constexpr ProjectorType projector_type{"refunds", 1};
  using Events = EventSet<Refunded>;

  void create(ReadModel& model) { model.execute("CREATE TABLE {refunds} (bill TEXT NOT NULL)"); }
  void project(ReadModel& model, const Recorded<Refunded>& refunded) {
    model.execute("INSERT INTO {refunds} VALUES (?1)", refunded.stream().key());
  }
};

/// Refunds at once what is paid.
template <class P>
struct Generous {
  static constexpr ReactionType reaction_type{"generous"};
  using Events = EventSet<P>;
  void react(UnitOfWork& unit, const Recorded<P>& paid) {
    using Root = typename Bill<P>::Root;
    unit.load(Id<Root>::of(paid.stream())).refund();
  }
};

struct Asked {
  static constexpr EventType event_type{"bill.asked", 1, local};
  std::string bill;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(bill));
  }
};

/// Refunds the bill that is asked for: events that it doesn't handle are in its stream.
template <class P>
struct Obliging {
  static constexpr ReactionType reaction_type{"obliging"};
  using Events = EventSet<Asked>;
  void react(UnitOfWork& unit, const Recorded<Asked>& asked) {
    using Root = typename Bill<P>::Root;
    unit.load(Id<Root>::from(asked->bill)).refund();
  }
};

struct Soon {
  static constexpr TimerType timer_type{"soon", 1};
  template <class Archive>
  void serialize(Archive&) {}
};

/// The same, an hour later.
template <class P>
struct Dilatory {
  static constexpr ProcessType process_type{"dilatory"};
  using Events = EventSet<Asked>;
  using Timers = TimerSet<Soon>;
  std::string key(const Recorded<Asked>& asked) { return asked->bill; }
  void react(Process& process, const Recorded<Asked>&) { process.set(Soon{}, 1h); }
  void due(Process& process, const Soon&) {
    using Root = typename Bill<P>::Root;
    process.unit().load(Id<Root>::from(process.key())).refund();
  }
};

template <class E>
void append(EventStore& store, const std::string& bill, E event) {
  UnitOfWork unit{store};
  unit.append(StreamId::of("bill", bill), ExpectedVersion::any(), std::move(event));
  unit.commit();
}

std::vector<std::string> payments_in(Store& store) {
  return test::lines(ModelReader{store}.query("SELECT * FROM payments ORDER BY bill"));
}

class UnknownVersion : public ::testing::Test {
 protected:
  void pay() {
    append(store_, "1", PaidV1{100});
    append(store_, "2", Paid{200, "USD"});
    append(store_, "3", PaidV1{300});
  }
  ProjectorStatus status() { return ProjectionOperations{store_}.status().at(0); }

  testing::ManualClock clock_;
  test::RecordingLog log_;
  Store store_ = test::open_empty({.log = &log_, .clock = &clock_});
  Projections older_{store_};
  Projections newer_{store_};
};

class UnknownVersionOfAProjector : public UnknownVersion {
 protected:
  explicit UnknownVersionOfAProjector(const ProjectorOptions& options = {}) {
    older_.add(Payments<PaidV1>{}, options);
    newer_.add(Payments<Paid>{&fails_}, options);
    pay();
  }
  bool fails_ = false;
};

TEST_F(UnknownVersionOfAProjector, IsLeftToARunnerThatKnowsIt) {
  Runner old_runner{older_};
  const RunnerTick tick = old_runner.run_once();

  EXPECT_EQ(tick.left_to_newer, 1);
  EXPECT_EQ(tick.failed, 0);
  EXPECT_EQ(tick.stopped, 0);
  EXPECT_THAT(payments_in(store_), ElementsAre("1 100"));
  const ProjectorStatus left = status();
  EXPECT_EQ(left.position, GlobalSequence{1});
  EXPECT_EQ(left.owner, "");
  EXPECT_EQ(left.attempts, 0);
  EXPECT_FALSE(left.stopped);
  EXPECT_EQ(left.failing, GlobalSequence{2});
  EXPECT_EQ(
      left.error,
      "event 2 (bill.paid v2, version 1 of 'bill-2'): the program that met it doesn't know its "
      "version; it waits for a runner that knows it");
  EXPECT_EQ(left.next_attempt_at, clock_.now() + 1h);

  const RunnerTick newer = Runner{newer_}.run_once();

  EXPECT_EQ(newer.commits, 1);
  EXPECT_THAT(payments_in(store_), ElementsAre("1 100", "2 200", "3 300"));
  EXPECT_EQ(status().error, "");
}

TEST_F(UnknownVersionOfAProjector, IsSaidOnceByEachRunner) {
  Runner old_runner{older_};
  for (int i = 0; i < 5; ++i) {
    old_runner.run_once();
    clock_.advance(1min);
  }
  EXPECT_THAT(log_.entries(),
              ElementsAre("warning projection.left_to_newer projector=payments version=1 "
                          "sequence=2 attempts=0"));
}

TEST_F(UnknownVersionOfAProjector, IsWaitedForAYearAtMost) {
  EXPECT_THAT(test::message_of<UsageError>([&] {
                const Runner runner{older_, {.unknown_version_wait = 24h * 366}};
              }),
              HasSubstr("unknown_version_wait is 8784 h; it must be 0 ms to 8760 h"));
  const Runner runner{older_, {.unknown_version_wait = 24h * 365}};
}

TEST_F(UnknownVersionOfAProjector, TakesNothingFromARunnerThatKnowsIt) {
  Runner old_runner{older_};
  old_runner.run_once();
  std::stop_source stop;
  std::vector<std::string> owners;
  Runner new_runner{newer_};
  new_runner.on_tick([&](const RunnerTick&) {
    old_runner.run_once();
    owners.push_back(status().owner);
    stop.request_stop();
  });
  new_runner.run(stop.get_token());

  EXPECT_THAT(owners, Contains(new_runner.worker()));
  EXPECT_THAT(payments_in(store_), SizeIs(3));
}

TEST_F(UnknownVersionOfAProjector, GivesWayToEventsThatBothKnow) {
  Runner old_runner{older_};
  old_runner.run_once();
  Runner{newer_}.run_once();
  append(store_, "4", PaidV1{400});

  old_runner.run_once();

  EXPECT_THAT(payments_in(store_), ElementsAre("1 100", "2 200", "3 300", "4 400"));
}

TEST_F(UnknownVersionOfAProjector, HaltsItWhenNobodyKnewItForSoLong) {
  Runner{older_}.run_once();
  clock_.advance(1h - 1s);
  EXPECT_EQ(Runner{older_}.run_once().stopped, 0) << "the time is that of the database";
  clock_.advance(1s);
  Runner last{older_};
  const RunnerTick tick = last.run_once();

  EXPECT_EQ(tick.stopped, 1);
  EXPECT_THAT(standing(store_), ElementsAre("payments@1 v1 living 1 stopped at 2"));
  EXPECT_EQ(status().attempts, 0);
  EXPECT_THAT(
      status().error,
      HasSubstr("no runner that knows it came in time; one that comes later continues by itself"));
  EXPECT_EQ(status().owner, "");
  EXPECT_EQ(last.run_once().stopped, 0);
}

TEST_F(UnknownVersionOfAProjector, ResumesWhatHaltedWhenARunnerKnowsIt) {
  const RunnerOptions hasty{.unknown_version_wait = 0ms};
  EXPECT_EQ((Runner{older_, hasty}.run_once().stopped), 1);
  append(store_, "4", PaidV1{400});
  EXPECT_EQ((Runner{older_, hasty}.run_once().stopped), 0);

  Runner{newer_}.run_once();

  EXPECT_THAT(standing(store_), ElementsAre("payments@1 v1 living 4"));
  EXPECT_THAT(payments_in(store_), SizeIs(4));
}

/// Looks at the projectors when it is told that one has stopped.
class Onlooker final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override {
    if (entry.name != "projection.stopped") return;
    for (const ProjectorStatus& one : ProjectionOperations{*store}.status()) {
      seen.push_back(one.stopped && one.owner.empty() ? "stopped and free" : "stopped or free");
    }
  }

  Store* store = nullptr;
  std::vector<std::string> seen;
};

TEST(UnknownVersionThatHalts, GivesTheProjectorBackInTheSameTransaction) {
  Onlooker onlooker;
  Store store = test::open_empty({.log = &onlooker});
  onlooker.store = &store;
  Projections older{store};
  older.add(Payments<PaidV1>{});
  append(store, "1", Paid{200, "USD"});

  EXPECT_EQ((Runner{older, {.unknown_version_wait = 0ms}}.run_once().stopped), 1);

  EXPECT_THAT(onlooker.seen, ElementsAre("stopped and free"));
}

TEST_F(UnknownVersionOfAProjector, StaysHaltedUntilARunnerThatKnowsItHasTried) {
  EXPECT_EQ((Runner{older_, {.unknown_version_wait = 0ms}}.run_once().stopped), 1);
  fails_ = true;

  EXPECT_EQ(Runner{newer_}.run_once().failed, 1);

  EXPECT_THAT(standing(store_), ElementsAre("payments@1 v1 living 1 retries 2"));
  EXPECT_EQ(status().attempts, 1);
}

TEST_F(UnknownVersionOfAProjector, ChargesARunnerThatKnowsItForItsOwnFailures) {
  Runner{older_}.run_once();
  fails_ = true;
  Runner new_runner{newer_};
  EXPECT_EQ(new_runner.run_once().failed, 1);
  EXPECT_EQ(status().attempts, 1);
  EXPECT_EQ(new_runner.run_once().failed, 0) << "its back-off isn't over";
  clock_.advance(1s);
  EXPECT_EQ(Runner{newer_}.run_once().failed, 1);
  EXPECT_EQ(status().attempts, 2);
  // That runner has gone: the time begins again.
  clock_.advance(1h);
  EXPECT_EQ(Runner{older_}.run_once().left_to_newer, 1);
  EXPECT_EQ(status().next_attempt_at, clock_.now() + 1h);
  fails_ = false;
  Runner{newer_}.run_once();

  EXPECT_THAT(payments_in(store_), SizeIs(3));
}

TEST_F(UnknownVersionOfAProjector, CanBeSkippedOrTriedAgain) {
  Runner old_runner{older_};
  old_runner.run_once();
  ProjectionOperations{store_}.retry("payments");
  clock_.advance(1min);
  EXPECT_EQ(old_runner.run_once().left_to_newer, 1);
  EXPECT_EQ(status().next_attempt_at, clock_.now() + 1h);

  ProjectionOperations{store_}.skip("payments", GlobalSequence{2});
  old_runner.run_once();

  EXPECT_THAT(payments_in(store_), ElementsAre("1 100", "3 300"));
}

TEST_F(UnknownVersionOfAProjector, StopsAReplayAtOnce) {
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)Replayer{older_}.run(); }),
              HasSubstr("event 2 (bill.paid v2"));
  EXPECT_TRUE(Replayer{newer_}.run().is_complete);
  EXPECT_THAT(payments_in(store_), SizeIs(3));
}

struct UnknownVersionOfAParkingProjector : UnknownVersionOfAProjector {
  UnknownVersionOfAParkingProjector()
      : UnknownVersionOfAProjector{{.on_error = OnError::park, .max_attempts = 1}} {}
};

TEST_F(UnknownVersionOfAParkingProjector, IsParkedWhenNobodyKnewItForSoLong) {
  Runner old_runner{older_};
  EXPECT_EQ(old_runner.run_once().parked, 0);
  clock_.advance(1h);
  EXPECT_EQ(old_runner.run_once().parked, 1);
  EXPECT_THAT(payments_in(store_), ElementsAre("1 100", "3 300"));

  ProjectionOperations operations{store_};
  operations.retry("payments", GlobalSequence{2});
  old_runner.run_once();
  EXPECT_EQ(operations.parked("payments").at(0).attempts, 0) << "no handler has had it";
  operations.retry("payments", GlobalSequence{2});
  Runner{newer_}.run_once();

  EXPECT_THAT(operations.parked("payments"), IsEmpty());
  EXPECT_THAT(payments_in(store_), SizeIs(3));
}

TEST_F(UnknownVersion, HoldsUpNoOtherProjector) {
  older_.add(Payments<PaidV1>{});
  older_.add(Refunds{});
  pay();
  append(store_, "3", Refunded{});

  Runner{older_}.run_once();

  EXPECT_THAT(standing(store_),
              ElementsAre("payments@1 v1 living 1 retries 2", "refunds@1 v1 living 4"));
}

TEST_F(UnknownVersion, LeavesARebuildToANewerRunner) {
  older_.add(Payments<PaidV1>{});
  Runner{older_}.run_once();
  pay();
  Replayer replayer{older_};
  EXPECT_THROW((void)replayer.run(), UsageError);
  ProjectionOperations{store_}.retry("payments");

  EXPECT_EQ(Runner{older_}.run_once().stopped, 0);
  newer_.add(Payments<Paid>{});
  Runner{newer_}.run_once();

  EXPECT_THAT(standing(store_), Contains("payments@2 v1 living 3"));
  EXPECT_THAT(payments_in(store_), SizeIs(3));
}

TEST_F(UnknownVersion, LeavesAReactionToANewerRunner) {
  older_.add_reaction(Generous<PaidV1>{}, {.start = ReactionStart::beginning});
  newer_.add_reaction(Generous<Paid>{}, {.start = ReactionStart::beginning});
  pay();

  EXPECT_EQ(Runner{older_}.run_once().left_to_newer, 1);
  EXPECT_EQ(store_.last_sequence(), GlobalSequence{4}) << "the first was refunded";
  Runner{newer_}.run_once();

  EXPECT_EQ(store_.last_sequence(), GlobalSequence{6});
}

/// The event that it reacts to is one that it knows, and the aggregate has others.
TEST_F(UnknownVersion, InAnAggregateLeavesAReactionToANewerRunner) {
  older_.add_reaction(Obliging<PaidV1>{}, {.start = ReactionStart::beginning});
  newer_.add_reaction(Obliging<Paid>{}, {.start = ReactionStart::beginning});
  append(store_, "2", Paid{200, "USD"});
  append(store_, "9", Asked{"2"});
  Runner old_runner{older_};

  EXPECT_EQ(old_runner.run_once().left_to_newer, 1);
  EXPECT_EQ(old_runner.run_once().left_to_newer, 0);
  EXPECT_EQ(status().attempts, 0);
  EXPECT_THAT(status().error, HasSubstr("event 2 (bill.asked v1, version 1 of 'bill-9'): event 1 "
                                        "(bill.paid v2"));
  Runner{newer_}.run_once();

  EXPECT_EQ(store_.last_sequence(), GlobalSequence{3});
}

/// Which runner knows what the handler needs isn't seen before it has tried.
TEST_F(UnknownVersion, InAnAggregateKeepsAReactionHaltedUntilARunnerKnowsIt) {
  older_.add_reaction(Obliging<PaidV1>{}, {.start = ReactionStart::beginning});
  newer_.add_reaction(Obliging<Paid>{}, {.start = ReactionStart::beginning});
  append(store_, "2", Paid{200, "USD"});
  append(store_, "9", Asked{"2"});
  EXPECT_EQ((Runner{older_, {.unknown_version_wait = 0ms}}.run_once().stopped), 1);
  const std::string error = status().error;

  Runner another{older_};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(another.run_once().left_to_newer, 0);
  EXPECT_TRUE(status().stopped);
  EXPECT_EQ(status().error, error);
  EXPECT_EQ(status().owner, "");
  Runner{newer_}.run_once();

  EXPECT_EQ(store_.last_sequence(), GlobalSequence{3});
  EXPECT_FALSE(status().stopped);
}

TEST_F(UnknownVersion, InAnAggregateOfAHaltedReactionIsTriedByAnyRunnerWhenAPersonSaysSo) {
  older_.add_reaction(Obliging<PaidV1>{}, {.start = ReactionStart::beginning});
  append(store_, "2", Paid{200, "USD"});
  append(store_, "9", Asked{"2"});
  EXPECT_EQ((Runner{older_, {.unknown_version_wait = 0ms}}.run_once().stopped), 1);

  ProjectionOperations{store_}.retry("obliging");

  EXPECT_EQ(Runner{older_}.run_once().left_to_newer, 1);
  EXPECT_FALSE(status().stopped);
}

TEST_F(UnknownVersion, InAnAggregatePutsATimerOff) {
  older_.add_process(Dilatory<PaidV1>{}, {.start = ReactionStart::beginning});
  newer_.add_process(Dilatory<Paid>{}, {.start = ReactionStart::beginning});
  append(store_, "2", Paid{200, "USD"});
  append(store_, "9", Asked{"2"});
  Runner old_runner{older_};
  old_runner.run_once();
  clock_.advance(1h);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(old_runner.run_once().timers_failed, 0);
    clock_.advance(6min - 1s);
  }
  EXPECT_EQ(TimerOperations{store_}.list().at(0).attempts, 0);
  EXPECT_THAT(log_.entries(), ElementsAre(HasSubstr("timer.failed"))) << "said once";

  EXPECT_EQ(Runner{newer_}.run_once().timers_fired, 1);
  EXPECT_EQ(store_.last_sequence(), GlobalSequence{3});
}

TEST_F(UnknownVersion, InAnAggregateLeavesTheProcessOfATimerToANewerRunner) {
  older_.add_process(Dilatory<PaidV1>{}, {.start = ReactionStart::beginning});
  newer_.add_process(Dilatory<Paid>{}, {.start = ReactionStart::beginning});
  append(store_, "2", Paid{200, "USD"});
  append(store_, "9", Asked{"2"});
  Runner{older_}.run_once();
  clock_.advance(1h);
  const std::jthread old{[&](const std::stop_token& stop) {
    Runner{older_, {.idle_backoff = 5ms}}.run(stop);
  }};
  ASSERT_TRUE(test::eventually([&] {
    return TimerOperations{store_}.list().at(0).error.ends_with(
        "; it waits for a runner that knows it");
  }));

  const std::jthread next{[&](const std::stop_token& stop) {
    Runner{newer_, {.idle_backoff = 5ms}}.run(stop);
  }};

  EXPECT_TRUE(test::eventually([&] {
    clock_.advance(1s);
    return store_.last_sequence() == GlobalSequence{3};
  }));
}

TEST_F(UnknownVersion, InAnAggregateFailsATimerAfterSoLong) {
  older_.add_process(Dilatory<PaidV1>{},
                     {.start = ReactionStart::beginning, .handling = {.max_attempts = 1}});
  append(store_, "2", Paid{200, "USD"});
  append(store_, "9", Asked{"2"});
  Runner old_runner{older_};
  old_runner.run_once();
  clock_.advance(2h);

  EXPECT_EQ(old_runner.run_once().timers_parked, 1);
}

}  // namespace
}  // namespace stela::unknown_version_test
