// Timers in trouble: failures, events that wait, kinds that nobody knows.
#include "projections/inn.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>

namespace stela::timer_test {
namespace {

using namespace std::chrono_literals;
using test::Booking;
using test::history;
using test::Inn;
using test::message_of;
using test::pay;
using test::PaymentDeadline;
using test::request;
using test::Requested;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- handlers that fail

TEST(Timer, IsNotChargedForAShortageOfMemory) {
  bool is_short = true;
  Inn inn{[&](Process&, const std::string&) {
            if (is_short) throw std::bad_alloc{};
          },
          {.handling = {.max_attempts = 1}}};
  request(inn.store, "1");
  inn.run();
  inn.run_after(15min);
  is_short = false;

  EXPECT_EQ(inn.run_after(1s).timers_fired, 1);
  EXPECT_THAT(history(inn.store), ElementsAre("1 requested", "1 cancelled"));
}

TEST(Timer, IsTriedAtOnceAfterAConflict) {
  int conflicts = 2;
  Inn inn{[&](Process&, const std::string&) {
            if (conflicts-- > 0) throw ConcurrencyConflict{"booking-1", "1", StreamVersion{2}};
          },
          {.handling = {.max_attempts = 1}}};
  request(inn.store, "1");
  inn.run();

  const RunnerTick tick = inn.run_after(15min);
  EXPECT_EQ(tick.timers_fired, 1);
  EXPECT_EQ(tick.timers_failed, 0);
}

TEST(Timer, IsParkedWhenItsConflictNeverEnds) {
  int tries = 0;
  Inn inn{[&](stela::Process& process, const std::string&) {
            ++tries;
            process.unit().append(StreamId::parse("booking-2"), ExpectedVersion::none(),
                                  test::Paid{});
          },
          {.handling = {.max_attempts = 3, .retry_backoff = 10s}}};
  request(inn.store, "1");
  request(inn.store, "2", 60);
  inn.run();
  TimerOperations timers{inn.store};
  const TimerName name{"payment_deadline", "booking-1", "not_paid"};

  EXPECT_EQ(inn.run_after(15min).timers_failed, 1);
  EXPECT_EQ(tries, 3);
  const auto first = timers.show(name);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->attempts, 1);
  EXPECT_THAT(first->error, HasSubstr("booking-2"));
  EXPECT_EQ(first->next_attempt_at, inn.clock.now() + 10s);
  EXPECT_EQ(inn.run_after(9s).timers_failed, 0);
  EXPECT_EQ(inn.run_after(1s).timers_failed, 1);
  EXPECT_EQ(timers.show(name)->next_attempt_at, inn.clock.now() + 20s);
  EXPECT_EQ(inn.run_after(20s).timers_parked, 1);
  EXPECT_EQ(timers.show(name)->state, TimerState::parked);
}

TEST(Timer, RollsBackWhatItsHandlerRecordedWhenItThrows) {
  Inn inn{[&](stela::Process& process, const std::string&) {
            process.unit().load(Id<Booking>::from("1")).cancel("too soon");
            process.set(test::Remind{}, 1h);
            throw std::runtime_error{"no"};
          },
          {.handling = {.max_attempts = 1}}};
  request(inn.store, "1");
  inn.run();

  EXPECT_EQ(inn.run_after(15min).timers_parked, 1);
  EXPECT_EQ(inn.run_after(24h).timers_fired, 0);
  EXPECT_THAT(history(inn.store), ElementsAre("1 requested"));
}

TEST(Timer, ThatIsTriedAgainHoldsLaterOnesOfItsInstanceOnly) {
  std::vector<std::string> fired;
  bool fails = true;
  Inn inn{[&](stela::Process& process, const std::string& kind) {
    if (fails && kind == "not_paid" && process.key() == "booking-1") throw std::runtime_error{"no"};
    fired.push_back(process.key() + ' ' + kind);
  }};
  request(inn.store, "1", 10);
  request(inn.store, "2", 12);
  inn.run();
  inn.run_after(20min);
  EXPECT_THAT(fired, ElementsAre("booking-2 not_paid"));
  fails = false;

  inn.run_after(1s);

  EXPECT_THAT(fired, ElementsAre("booking-2 not_paid", "booking-1 not_paid"));
}

TEST(Timer, IsClearedByAnEventThatAnEarlierOneRecords) {
  std::vector<std::string> fired;
  Inn inn{[&](stela::Process& process, const std::string&) {
    fired.push_back(process.key());
    if (process.key() == "booking-1") process.unit().load(Id<Booking>::from("2")).pay();
  }};
  for (const char* const key : {"1", "2", "3"}) request(inn.store, key);
  inn.run();

  inn.run_after(15min);

  EXPECT_THAT(fired, ElementsAre("booking-1", "booking-3"));
}

struct Opened {
  static constexpr EventType event_type{"question.opened", 1, local};
};
struct Asked {
  static constexpr EventType event_type{"question.asked", 1, local};
};
struct Answered {
  static constexpr EventType event_type{"question.answered", 1, local};
};
struct GivenUp {
  static constexpr EventType event_type{"question.given_up", 1, local};
};
struct Ask {
  static constexpr TimerType timer_type{"ask", 1};
};
struct GiveUp {
  static constexpr TimerType timer_type{"give_up", 1};
};

class Asker {
 public:
  static constexpr ProcessType process_type{"questions"};
  using Events = EventSet<Opened>;
  using Timers = TimerSet<Ask>;
  void react(stela::Process& process, const Recorded<Opened>&) { process.set(Ask{}, 15min); }
  void due(stela::Process& process, const Ask&) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(), Asked{});
  }
};

class Answerer {
 public:
  static constexpr ProcessType process_type{"replies"};
  using Events = EventSet<Opened, Asked, Answered>;
  using Timers = TimerSet<GiveUp>;
  void react(stela::Process& process, const Recorded<Opened>&) { process.set(GiveUp{}, 15min); }
  void react(stela::Process& process, const Recorded<Asked>&) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(), Answered{});
  }
  void react(stela::Process& process, const Recorded<Answered>&) { process.clear<GiveUp>(); }
  void due(stela::Process& process, const GiveUp&) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(), GivenUp{});
  }
};

TEST(Timer, IsClearedByTheAnswerToAnEventThatComesBeforeIt) {
  Inn inn{Asker{}};
  inn.projections.add_process(Answerer{});
  Runner runner{inn.projections};
  UnitOfWork unit{inn.store};
  unit.append(StreamId::parse("question-1"), ExpectedVersion::any(), Opened{});
  runner.run_once();
  unit.commit();
  runner.run_once();
  inn.clock.advance(15min);

  runner.run_once();

  EXPECT_THAT(test::lines(inn.store.read_all()),
              ElementsAre("1 question-1@1 question.opened {}", "2 question-1@2 question.asked {}",
                          "3 question-1@3 question.answered {}"));
}

/// Reminds of the first booking when that should have been paid.
class Reminding {
 public:
  static constexpr ProcessType process_type{"reminding"};
  using Events = EventSet<Requested>;
  using Timers = TimerSet<test::NotPaid, test::Remind>;
  Reminding(std::function<void(Process&)> on_not_paid, std::vector<std::string>& fired)
      : on_not_paid_{std::move(on_not_paid)}, fired_{&fired} {}

  void react(stela::Process& process, const Recorded<Requested>& e) {
    process.set(test::NotPaid{Id<Booking>::of(e.stream())},
                e.recorded_at() + std::chrono::minutes{e->minutes});
  }
  void due(stela::Process& process, const test::NotPaid&) {
    fired_->push_back(process.key() + " not_paid");
    on_not_paid_(process);
  }
  void due(stela::Process& process, const test::Remind&) {
    fired_->push_back(process.key() + " remind");
  }

 private:
  std::function<void(Process&)> on_not_paid_;
  std::vector<std::string>* fired_;
};

TEST(Timer, FiresInTheOrderOfDueTimesWithOneThatAnEarlierOneSets) {
  std::vector<std::string> fired;
  const Timestamp began = testing::ManualClock::start;
  Inn inn{Reminding{[&](stela::Process& process) {
                      if (process.key() == "booking-1") process.set(test::Remind{}, began + 12min);
                    },
                    fired}};
  request(inn.store, "1", 10);
  request(inn.store, "2", 14);
  inn.run();

  inn.run_after(20min);

  EXPECT_THAT(fired, ElementsAre("booking-1 not_paid", "booking-1 remind", "booking-2 not_paid"));
}

/// Two timers for each booking: what the first one does is the test's.
class TwoTimers {
 public:
  static constexpr ProcessType process_type{"two_timers"};
  using Events = EventSet<Requested>;
  using Timers = TimerSet<test::NotPaid, test::Remind>;
  TwoTimers(std::function<void()> on_not_paid, std::vector<std::string>& fired)
      : on_not_paid_{std::move(on_not_paid)}, fired_{&fired} {}

  void react(stela::Process& process, const Recorded<Requested>& e) {
    process.set(test::NotPaid{Id<Booking>::of(e.stream())}, 10min);
    process.set(test::Remind{}, 11min);
  }
  void due(stela::Process& process, const test::NotPaid&) {
    on_not_paid_();
    fired_->push_back(process.key() + " not_paid");
  }
  void due(stela::Process& process, const test::Remind&) {
    fired_->push_back(process.key() + " remind");
  }

 private:
  std::function<void()> on_not_paid_;
  std::vector<std::string>* fired_;
};

TEST(Timer, WaitsForAnEarlierOneOfItsInstanceUntilThatIsParked) {
  std::vector<std::string> fired;
  Inn inn{TwoTimers{[] { throw std::runtime_error{"no"}; }, fired},
          {.handling = {.max_attempts = 2}}};
  request(inn.store, "1");
  inn.run();
  inn.run_after(20min);
  EXPECT_THAT(fired, IsEmpty());

  EXPECT_EQ(inn.run_after(1s).timers_parked, 1);

  EXPECT_THAT(fired, ElementsAre("booking-1 remind"));
}

TEST(Timer, WaitsForAnEarlierOneOfItsInstanceThatWasShortOfMemory) {
  std::vector<std::string> fired;
  bool is_short = true;
  Inn inn{TwoTimers{[&] {
                      if (is_short) throw std::bad_alloc{};
                    },
                    fired}};
  request(inn.store, "1");
  inn.run();
  inn.run_after(20min);
  EXPECT_THAT(fired, IsEmpty());
  is_short = false;

  inn.run_after(1s);

  EXPECT_THAT(fired, ElementsAre("booking-1 not_paid", "booking-1 remind"));
}

// --- events first

struct Picky {
  static constexpr ProcessType process_type{"picky"};
  using Events = EventSet<Requested, test::Paid>;
  using Timers = TimerSet<test::NotPaid>;
  void react(stela::Process& process, const Recorded<Requested>& e) {
    process.set(test::NotPaid{Id<Booking>::of(e.stream())}, 15min);
  }
  void react(Process&, const Recorded<test::Paid>&) { throw std::runtime_error{"not now"}; }
  void due(Process&, const test::NotPaid&) {}
};

TEST(Timer, WaitsWhileItsProcessRetriesAnEvent) {
  Inn inn{Picky{}, {.handling = {.max_attempts = 3, .retry_backoff = 1h, .retry_backoff_max = 1h}}};
  request(inn.store, "1");
  inn.run();
  pay(inn.store, "1");

  EXPECT_EQ(inn.run_after(20min).timers_fired, 0);
}

class ParksPayments {
 public:
  static constexpr ProcessType process_type{"parks"};
  using Events = EventSet<Requested, test::Paid>;
  using Timers = TimerSet<test::NotPaid>;
  explicit ParksPayments(const bool& fails) : fails_{&fails} {}

  std::string key(const Recorded<Requested>& e) { return e.stream().name(); }
  std::string key(const Recorded<test::Paid>& e) { return e.stream().name(); }
  void react(stela::Process& process, const Recorded<Requested>& e) {
    process.set(test::NotPaid{Id<Booking>::of(e.stream())}, 15min);
  }
  void react(stela::Process& process, const Recorded<test::Paid>&) {
    if (*fails_) throw std::runtime_error{"can't take it"};
    process.clear<test::NotPaid>();
  }
  void due(stela::Process& process, const test::NotPaid& timer) {
    process.unit().load(timer.booking).cancel("not paid");
  }

 private:
  const bool* fails_;
};

TEST(Timer, IsHeldByAParkedEventOfItsInstance) {
  bool fails = true;
  Inn inn{ParksPayments{fails}, {.handling = {.on_error = OnError::park, .max_attempts = 1}}};
  request(inn.store, "1");
  request(inn.store, "2");
  pay(inn.store, "1");
  EXPECT_EQ(inn.run().parked, 1);

  EXPECT_EQ(inn.run_after(20min).timers_fired, 1);
  EXPECT_THAT(history(inn.store),
              ElementsAre("1 requested", "2 requested", "1 paid", "2 cancelled"));
  fails = false;
  ProjectionOperations{inn.store}.retry("parks", GlobalSequence{3});
  EXPECT_EQ(inn.run().timers_fired, 0) << "the payment cleared it";
}

TEST(Timer, FiresAfterTheParkedEventOfItsInstanceWasSkipped) {
  const bool fails = true;
  Inn inn{ParksPayments{fails}, {.handling = {.on_error = OnError::park, .max_attempts = 1}}};
  request(inn.store, "1");
  pay(inn.store, "1");
  inn.run();
  EXPECT_EQ(inn.run_after(20min).timers_fired, 0);

  ProjectionOperations{inn.store}.skip("parks", GlobalSequence{2});

  EXPECT_EQ(inn.run().timers_fired, 1);
}

class KeysOfNobody {
 public:
  static constexpr ProcessType process_type{"keys"};
  using Events = EventSet<Requested, test::Paid>;
  using Timers = TimerSet<test::Remind>;
  explicit KeysOfNobody(std::string key) : key_{std::move(key)} {}

  std::string key(const Recorded<test::Paid>&) { return key_; }
  void react(stela::Process& process, const Recorded<Requested>&) {
    process.set(test::Remind{}, 15min);
  }
  void react(Process&, const Recorded<test::Paid>&) {}
  void due(Process&, const test::Remind&) {}

 private:
  std::string key_;
};

TEST(Timer, IsHeldByAParkedEventWhoseInstanceIsUnknown) {
  Inn inn{KeysOfNobody{std::string(10'000, 'k')},
          {.handling = {.on_error = OnError::park, .max_attempts = 1}}};
  request(inn.store, "1");
  request(inn.store, "2");
  pay(inn.store, "2");
  inn.run();
  const auto parked = ProjectionOperations{inn.store}.parked("keys");

  ASSERT_EQ(parked.size(), 1U);
  EXPECT_THAT(parked[0].error, HasSubstr("it is longer than 255 bytes"));
  EXPECT_EQ(inn.run_after(20min).timers_fired, 0);
  ProjectionOperations{inn.store}.skip("keys", parked[0].sequence);
  EXPECT_EQ(inn.run().timers_fired, 2);
}

TEST(Timer, WithAnInvalidKeyIsRefused) {
  for (const auto& [key, rule] : {std::pair{std::string{}, "it is empty"},
                                  {std::string{"a\nb"}, "it has a control character"},
                                  {std::string{"\xff"}, "it isn't valid UTF-8"}}) {
    Inn inn{KeysOfNobody{key}, {.handling = {.max_attempts = 1}}};
    request(inn.store, "1");
    pay(inn.store, "1");
    inn.run();
    EXPECT_THAT(ProjectionOperations{inn.store}.status().at(0).error, HasSubstr(rule));
  }
}

struct Halting {
  static constexpr ProcessType process_type{"stopping"};
  using Events = EventSet<Requested, test::Paid>;
  using Timers = TimerSet<test::Remind>;
  void react(stela::Process& process, const Recorded<Requested>&) {
    process.set(test::Remind{}, 15min);
  }
  void react(Process&, const Recorded<test::Paid>&) { throw std::runtime_error{"no"}; }
  void due(Process&, const test::Remind&) {}
};

TEST(Timer, OfAHaltedProcessDoesNotFire) {
  Inn inn{Halting{}, {.handling = {.max_attempts = 1}}};
  request(inn.store, "1");
  pay(inn.store, "1");
  EXPECT_EQ(inn.run().stopped, 1);

  EXPECT_EQ(inn.run_after(20min).timers_fired, 0);
}

TEST(Timer, OfOneProcessIsNotHeldByAnother) {
  const bool fails = true;
  Inn inn;
  inn.projections.add_process(ParksPayments{fails}, {.handling = {.max_attempts = 1}});
  Runner runner{inn.projections};
  request(inn.store, "1");
  request(inn.store, "2");
  runner.run_once();
  pay(inn.store, "2");
  EXPECT_EQ(runner.run_once().stopped, 1);
  inn.clock.advance(15min);

  EXPECT_EQ(runner.run_once().timers_fired, 1);
  EXPECT_THAT(history(inn.store),
              ElementsAre("1 requested", "2 requested", "2 paid", "1 cancelled"));
}

// --- releases

struct Before {
  static constexpr ReactionType reaction_type{"payment_deadline"};
  using Events = EventSet<Requested>;
  void react(UnitOfWork&, const Recorded<Requested>&) {}
};

TEST(Timer, OfAReactionThatBecomesAProcessStartsFromItsCheckpoint) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  Projections before{store};
  before.add_reaction(Before{});
  Runner old_runner{before};
  request(store, "1");
  old_runner.run_once();
  request(store, "2");

  Projections after{store};
  after.add_process(PaymentDeadline{});
  EXPECT_EQ(old_runner.run_once().owned_count, 0) << "it isn't a reaction any more";
  Runner runner{after};
  runner.run_once();
  clock.advance(15min);
  runner.run_once();

  EXPECT_THAT(history(store), ElementsAre("1 requested", "2 requested", "2 cancelled"));
  EXPECT_THAT(message_of<UsageError>([&] { Projections{store}.add_reaction(Before{}); }),
              HasSubstr("as a process"));
}

/// Older and newer releases of one process.
struct Old {
  static constexpr ProcessType process_type{"release"};
  using Events = EventSet<Requested, test::Paid>;
  using Timers = TimerSet<test::Remind>;
  void react(Process&, const Recorded<Requested>&) {}
  void react(Process&, const Recorded<test::Paid>&) {}
  void due(Process&, const test::Remind&) {}
};
struct RemindV2 {
  static constexpr TimerType timer_type{"remind", 2};
  using Supersedes = test::Remind;
  static RemindV2 upcast(test::Remind) { return {7}; }
  int times = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(times));
  }
};
struct New {
  static constexpr ProcessType process_type{"release"};
  using Events = EventSet<Requested, test::Paid>;
  using Timers = TimerSet<RemindV2>;
  std::vector<int>* fired;
  void react(stela::Process& process, const Recorded<Requested>&) {
    process.set(RemindV2{1}, 15min);
  }
  void react(Process&, const Recorded<test::Paid>&) {}
  void due(Process&, const RemindV2& timer) { fired->push_back(timer.times); }
};

TEST(Timer, OfANewerReleaseIsLeftToItsRunner) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  std::vector<int> fired;
  Projections newer{store};
  newer.add_process(New{&fired});
  Projections older{store};
  older.add_process(Old{});
  request(store, "1");
  Runner new_runner{newer};
  new_runner.run_once();
  clock.advance(15min);

  Runner old_runner{older};
  EXPECT_EQ(old_runner.run_once().timers_failed, 0);
  EXPECT_THAT(fired, IsEmpty());
  new_runner.run_once();

  EXPECT_THAT(fired, ElementsAre(1));
}

TEST(Timer, IsTakenByARunnerThatKnowsItFromOneThatDoesNot) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  std::vector<int> fired;
  Projections newer{store};
  newer.add_process(New{&fired});
  request(store, "1");
  Runner new_runner{newer};
  new_runner.run_once();
  clock.advance(15min);
  Projections older{store};
  older.add_process(Old{});
  Runner old_runner{older};
  std::stop_source stop;
  bool has_seen = false;
  old_runner.on_tick([&](const RunnerTick&) {
    // The older runner holds the process while the newer one comes.
    if (has_seen) return stop.request_stop(), void();
    has_seen = true;
    new_runner.run_once();
    stop.request_stop();
  });
  old_runner.run(stop.get_token());

  EXPECT_THAT(fired, ElementsAre(1));
}

struct First {
  static constexpr ProcessType process_type{"release"};
  using Events = EventSet<Requested>;
  using Timers = TimerSet<test::Remind>;
  void react(stela::Process& process, const Recorded<Requested>&) {
    process.set(test::Remind{}, 15min);
  }
  void due(Process&, const test::Remind&) {}
};

TEST(Timer, OfAnOlderVersionIsReadByTheNewerRelease) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  Projections older{store};
  older.add_process(First{});
  request(store, "1");
  Runner{older}.run_once();
  std::vector<int> fired;
  Projections newer{store};
  newer.add_process(New{&fired});
  clock.advance(15min);

  Runner{newer}.run_once();

  EXPECT_THAT(fired, ElementsAre(7));
}

struct Forgets {
  static constexpr ProcessType process_type{"forgets"};
  using Events = EventSet<Requested>;
  using Timers = TimerSet<test::Remind>;
  void react(stela::Process& process, const Recorded<Requested>&) {
    process.set(test::NotPaid{}, 1h);
  }
  void due(Process&, const test::Remind&) {}
};

TEST(Timer, FailsIfItsHandlerCommitsTheUnitOfWork) {
  Inn inn{[](stela::Process& process, const std::string&) {
            process.unit().load(Id<Booking>::from("1")).cancel("too soon");
            process.unit().commit();
          },
          {.handling = {.max_attempts = 1}}};
  request(inn.store, "1");
  inn.run();

  EXPECT_EQ(inn.run_after(15min).timers_parked, 1);
  EXPECT_THAT(TimerOperations{inn.store}.list().at(0).error,
              HasSubstr("which is committed with the checkpoint"));
  EXPECT_THAT(history(inn.store), ElementsAre("1 requested"));
}

struct BeforeTime {
  static constexpr ProcessType process_type{"before_time"};
  using Events = EventSet<Requested>;
  using Timers = TimerSet<test::NotPaid, test::Remind>;
  void react(stela::Process& process, const Recorded<Requested>&) {
    process.set(test::NotPaid{}, Timestamp::min());
    process.set(test::Remind{}, Every{1h, Timestamp::min()});
  }
  void due(Process&, const test::NotPaid&) { throw std::runtime_error{"no"}; }
  void due(Process&, const test::Remind&) {}
};

TEST(Timer, ThatIsSetBefore1970IsDueSince1970) {
  Inn inn{BeforeTime{}, {.handling = {.max_attempts = 100}}};
  request(inn.store, "1");
  EXPECT_EQ(inn.run().timers_failed, 1);

  const auto timers = TimerOperations{inn.store}.list();
  ASSERT_EQ(timers.size(), 2U);
  for (const TimerStatus& timer : timers) {
    EXPECT_EQ(timer.due_at, Timestamp{});
    EXPECT_EQ(timer.late, inn.clock.now() - Timestamp{});
  }
  EXPECT_EQ(TimerOperations{inn.store}.processes().at(0).overdue, 2);
}

TEST(Timer, IsRefusedIfItsProcessDoesNotNameIt) {
  Inn inn{Forgets{}, {.handling = {.max_attempts = 1}}};
  request(inn.store, "1");
  inn.run();

  EXPECT_THAT(ProjectionOperations{inn.store}.status().at(0).error,
              HasSubstr("the process has no timer 'not_paid'; add it to its TimerSet"));
}

}  // namespace
}  // namespace stela::timer_test
