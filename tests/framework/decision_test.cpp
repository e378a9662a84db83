// What a decision sees, records, and does when somebody else was faster.
#include "courses/courses.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/decision_scenario.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::decision_test {
namespace {

using courses::Course;
using courses::CourseDefined;
using courses::CourseId;
using courses::DefineCourse;
using courses::Load;
using courses::Place;
using courses::Refused;
using courses::Seats;
using courses::Student;
using courses::StudentId;
using courses::Subscribe;
using courses::Subscribed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Decisions : public ::testing::Test {
 protected:
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    for (const StoredEvent& event : store.read_all({.with_tags = true})) {
      all.push_back(event.stream.name() + '@' + std::to_string(event.version.value()) + ' ' +
                    event.type() + (event.tags.empty() ? "" : " #") + std::string{event.tags});
    }
    return all;
  }
  static std::int64_t count(const AppendResult& result) {
    return result.last.value() == 0 ? 0 : result.last.value() - result.first.value() + 1;
  }

  testing::ManualClock clock;
  Store store = sqlite::open_in_memory({.clock = &clock});
  const CourseId course = CourseId::from("c1");
  const CourseId other = CourseId::from("c2");
  const StudentId student = StudentId::from("s1");
};

TEST_F(Decisions, RecordAnEventToTheStreamOfItsFirstTag) {
  decide(store, DefineCourse{course, 2});
  const AppendResult result = decide(store, Subscribe{course, student});

  EXPECT_THAT(lines(), ElementsAre("course-c1@1 course.defined",
                                   "course-c1@2 course.subscribed #student-s1"));
  EXPECT_EQ(result.first, GlobalSequence{2});
}

TEST_F(Decisions, SeeEventsByTagAcrossStreams) {
  decide(store, DefineCourse{course, 2});
  decide(store, DefineCourse{other, 2});
  decide(store, Subscribe{course, student});
  decide(store, Subscribe{other, student});

  decide(store, Load{student}, Seats{course},
         [&](Decision& decision, const Load& load, const Seats& seats) {
           EXPECT_EQ(load.courses, 2);
           EXPECT_EQ(seats.taken, 1);
           EXPECT_EQ(seats.capacity, 2);
           EXPECT_EQ(decision.position(), GlobalSequence{4});
         });
}

TEST_F(Decisions, ThatRefuseAppendNothing) {
  decide(store, DefineCourse{course, 1});
  decide(store, Subscribe{course, student});

  EXPECT_THROW(decide(store, Subscribe{course, StudentId::from("s2")}), Refused);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(Decisions, ThatRecordNothingReturnNoSequence) {
  const AppendResult result = decide(store, Load{student}, [](Decision&, const Load&) {});
  EXPECT_EQ(result.last, GlobalSequence{0});
}

TEST_F(Decisions, DecideAgainWhenAnEventOfTheirViewsWasAppended) {
  decide(store, DefineCourse{course, 1});
  int runs = 0;
  EXPECT_THROW(decide(store, Seats{course},
                      [&](Decision& decision, const Seats& seats) {
                        if (runs++ == 0) decide(store, Subscribe{course, StudentId::from("s2")});
                        if (seats.taken >= seats.capacity) throw Refused{"full"};
                        decision.record(Subscribed{course, student});
                      }),
               Refused);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(Decisions, AreNotDisturbedByOtherTagsAndTypes) {
  decide(store, DefineCourse{course, 1});
  decide(store, DefineCourse{other, 1});
  int runs = 0;
  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    if (runs++ == 0) decide(store, Subscribe{other, student});
    decision.record(Subscribed{course, student});
  });
  EXPECT_EQ(runs, 1);
}

TEST_F(Decisions, SucceedAtTheLastAttemptWhoeverElseWrites) {
  decide(store, DefineCourse{course, 1000});
  int runs = 0;
  const DecideOptions options{.retry = {.max_attempts = 4, .wait = [](auto) {}}};
  decide(store, options, Seats{course}, [&](Decision& decision, const Seats& seats) {
    // Somebody is always faster, until nobody else may write.
    if (++runs < 4) {
      decide(store, Subscribe{course, StudentId::from("s" + std::to_string(runs))});
    }
    EXPECT_EQ(seats.taken, runs - 1);
    decision.record(Subscribed{course, student});
  });
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{5});
}

TEST_F(Decisions, UnderAnIdAreDecidedOnce) {
  decide(store, DefineCourse{course, 1});
  int runs = 0;
  const auto subscribe = [&](Decision& decision, const Seats& seats) {
    ++runs;
    if (seats.taken >= seats.capacity) throw Refused{"full"};
    decision.record(Subscribed{course, student});
  };
  const AppendResult first = decide(store, {.append_id = "request-7"}, Seats{course}, subscribe);
  const AppendResult again = decide(store, {.append_id = "request-7"}, Seats{course}, subscribe);

  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(first.repeated);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.first, first.first);
}

TEST_F(Decisions, UnderAnIdThatRecordNothingKeepTheId) {
  int runs = 0;
  const auto nothing = [&](Decision&, const Load&) { ++runs; };
  decide(store, {.append_id = "request-8"}, Load{student}, nothing);
  decide(store, {.append_id = "request-8"}, Load{student}, nothing);
  EXPECT_EQ(runs, 1);
}

TEST_F(Decisions, ReadFurtherViewsAtTheSamePosition) {
  decide(store, DefineCourse{course, 2});
  decide(store, DefineCourse{other, 2});
  int runs = 0;
  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    if (runs++ == 0) decide(store, Subscribe{other, StudentId::from("s2")});
    const Seats more = decision.read(Seats{other});
    // In the first run the other subscription isn't visible yet; it makes a second one.
    EXPECT_EQ(more.taken, runs - 1);
    decision.record(Subscribed{course, student});
  });
  EXPECT_EQ(runs, 2);
}

TEST_F(Decisions, SeeWhatTheyRecordedInFurtherViews) {
  decide(store, DefineCourse{course, 2});
  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    decision.record(Subscribed{course, student});
    EXPECT_EQ(decision.read(Seats{course}).taken, 1);
    EXPECT_TRUE(decision.read(Place{course, student}).taken);
    EXPECT_FALSE(decision.read(Place{course, StudentId::from("s2")}).taken);
  });
}

TEST_F(Decisions, TakeAVectorOfViews) {
  decide(store, DefineCourse{course, 2});
  decide(store, DefineCourse{other, 7});
  const std::vector<Seats> both{Seats{course}, Seats{other}};
  decide(store, both, [&](Decision& decision, const std::vector<Seats>& seats) {
    ASSERT_EQ(seats.size(), 2U);
    EXPECT_EQ(seats[0].capacity, 2);
    EXPECT_EQ(seats[1].capacity, 7);
    decision.record(Subscribed{course, student});
    decision.record(Subscribed{other, student});
  });
  EXPECT_THAT(lines(), ElementsAre("course-c1@1 course.defined", "course-c2@1 course.defined",
                                   "course-c1@2 course.subscribed #student-s1",
                                   "course-c2@2 course.subscribed #student-s1"));
}

/// When a student subscribed last.
struct LastTime {
  using Events = EventSet<Subscribed>;
  StudentId student;
  static constexpr auto tags = stela::tags(&LastTime::student);
  static constexpr bool last_only = true;
  int events = 0;
  CourseId course = {};
  Timestamp at = {};
  void apply(const Recorded<Subscribed>& event) {
    ++events;
    course = event->course;
    at = event.recorded_at();
  }
};

TEST_F(Decisions, OfTheLastEventAloneReadNoOther) {
  decide(store, DefineCourse{course, 2});
  decide(store, DefineCourse{other, 2});
  decide(store, Subscribe{course, student});
  clock.advance(std::chrono::hours{1});
  decide(store, Subscribe{other, student});

  decide(store, LastTime{student}, [&](Decision& decision, const LastTime& last) {
    EXPECT_EQ(last.events, 1);
    EXPECT_EQ(last.course, other);
    EXPECT_EQ(last.at, clock.now());
    decision.record(Subscribed{course, student});
    const LastTime pending = decision.read(LastTime{student});
    EXPECT_EQ(pending.events, 1);
    EXPECT_EQ(pending.course, course);
  });
}

TEST_F(Decisions, OfTheLastEventConflictWithANewOne) {
  decide(store, DefineCourse{course, 9});
  int runs = 0;
  decide(store, LastTime{student}, [&](Decision& decision, const LastTime& last) {
    EXPECT_EQ(last.events, runs);
    if (runs++ == 0) decide(store, Subscribe{course, student});
    decision.record(Subscribed{other, student});
  });
  EXPECT_EQ(runs, 2);
}

// --- their time

TEST_F(Decisions, HaveOneTimeByTheClockOfTheStore) {
  Timestamp first;
  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    first = decision.now();
    clock.advance(std::chrono::seconds{5});
    EXPECT_EQ(decision.now(), first);
    decision.record(CourseDefined{course, 2});
  });
  EXPECT_EQ(first, testing::ManualClock::start);
  for (const StoredEvent& event : store.read_all()) {
    EXPECT_EQ(event.recorded_at, first + std::chrono::seconds{5});
  }
}

TEST_F(Decisions, ThatRunAgainHaveATimeOfTheirOwn) {
  decide(store, DefineCourse{course, 9});
  std::vector<Timestamp> times;
  decide(store, Load{student}, [&](Decision& decision, const Load&) {
    times.push_back(decision.now());
    clock.advance(std::chrono::seconds{5});
    if (times.size() == 1) decide(store, Subscribe{course, student});
    decision.record(Subscribed{other, student});
  });
  EXPECT_THAT(times, ElementsAre(testing::ManualClock::start,
                                 testing::ManualClock::start + std::chrono::seconds{5}));
}

struct WhenSubscribed {
  using Events = EventSet<Subscribed>;
  StudentId student;
  static constexpr auto tags = stela::tags(&WhenSubscribed::student);
  Timestamp at = {};
  void apply(const Recorded<Subscribed>& event) { at = event.recorded_at(); }
};

TEST_F(Decisions, ShowEventsOfTheirUnitWithTheTimeOfTheStoresClock) {
  UnitOfWork unit{store};
  decide(unit, [&](Decision& decision) { decision.record(Subscribed{course, student}); });
  decide(unit, WhenSubscribed{student}, [&](Decision&, const WhenSubscribed& subscribed) {
    EXPECT_EQ(subscribed.at, testing::ManualClock::start);
  });
}

TEST(DecisionScenario, SetsTheTimeOfItsDecisionsAndEvents) {
  const CourseId course = CourseId::from("c1");
  const StudentId student = StudentId::from("s1");
  const Timestamp noon = testing::ManualClock::start + std::chrono::hours{12};
  const auto lasts = [&](std::chrono::hours expected) {
    return [expected](Decision& decision, const WhenSubscribed& subscribed) {
      EXPECT_EQ(decision.now() - subscribed.at, expected);
    };
  };
  testing::DecisionScenario scenario;
  scenario.at(noon).add(Subscribed{course, student});
  scenario.when(WhenSubscribed{student}, lasts(std::chrono::hours{0}));
  scenario.later(std::chrono::hours{3});
  scenario.when(WhenSubscribed{student}, lasts(std::chrono::hours{3}));
}

TEST(DecisionScenario, ShowsWhatWasRecorded) {
  const CourseId course = CourseId::from("c1");
  const Timestamp noon = testing::ManualClock::start + std::chrono::hours{12};
  testing::DecisionOutcome outcome =
      testing::given(CourseDefined{course, 2}).at(noon).when([&](Decision& decision) {
        decision.record(Subscribed{course, StudentId::from("s1")});
        decision.record(CourseDefined{course, 3});
      });

  ASSERT_EQ(outcome.recorded().size(), 2U);
  EXPECT_EQ(outcome.recorded()[0].stream.name(), "course-c1");
  EXPECT_EQ(outcome.recorded()[0].type, "course.subscribed");
  EXPECT_EQ(outcome.recorded()[0].recorded_at, noon);
  EXPECT_NE(outcome.recorded()[0].id, outcome.recorded()[1].id);
  EXPECT_EQ(outcome.recorded<CourseDefined>().capacity, 3);
}

TEST(DecisionScenario, GivesRecordedEventsThatOutliveIt) {
  const CourseDefined defined{CourseId::from("c1"), 2};
  std::string types;
  for (const auto& event : testing::given_nothing()
                               .when([&](Decision& decision) { decision.record(defined); })
                               .then(defined)
                               .recorded()) {
    types += event.type;
  }
  EXPECT_EQ(types, "course.defined");
}

TEST(DecisionScenario, FailsWhereNotOneEventOfTheTypeWasRecorded) {
  const CourseId course = CourseId::from("c1");
  testing::DecisionOutcome nothing = testing::given_nothing().when([](Decision&) {});
  EXPECT_THROW((void)nothing.recorded<CourseDefined>(), testing::ScenarioFailed);
  testing::DecisionOutcome refused =
      testing::given_nothing().when([](Decision&) { throw Refused{"no"}; });
  EXPECT_THROW((void)refused.recorded(), testing::ScenarioFailed);
  testing::DecisionOutcome two = testing::given_nothing().when([&](Decision& decision) {
    decision.record(CourseDefined{course, 2});
    decision.record(CourseDefined{course, 3});
  });
  EXPECT_THROW((void)two.recorded<CourseDefined>(), testing::ScenarioFailed);
}

// --- with aggregates

TEST_F(Decisions, LoadAggregatesAtTheirPosition) {
  Repository<Student> students{store};
  Student jane{student};
  jane.enrol("jane");
  students.save(jane);
  decide(store, DefineCourse{course, 1});

  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    EXPECT_EQ(decision.load(student).state().name, "jane");
    EXPECT_THROW((void)decision.load(StudentId::from("s9")), AggregateNotFound);
    decision.record(Subscribed{course, student});
  });
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
}

TEST_F(Decisions, ConflictWhenALoadedAggregateHasChanged) {
  decide(store, DefineCourse{course, 1});
  int runs = 0;
  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    const bool is_there = decision.find(student) != nullptr;
    EXPECT_EQ(is_there, runs == 1);
    if (runs++ == 0) {
      Student jane{student};
      jane.enrol("jane");
      Repository<Student>{store}.save(jane);
    }
    decision.record(Subscribed{course, student});
  });
  EXPECT_EQ(runs, 2);
}

TEST_F(Decisions, SaveWhatAggregatesRecordInTheOrderOfRecording) {
  decide(store, DefineCourse{course, 2});
  UnitOfWork unit{store};
  Student& jane = unit.add(Student{student});
  decide(unit, Seats{course}, [&](Decision& decision, const Seats&) {
    decision.record(Subscribed{course, student});
    jane.enrol("jane");
    decision.record(Subscribed{other, student});
  });
  const AppendResult result = unit.commit();

  EXPECT_EQ(count(result), 3);
  EXPECT_THAT(
      lines(),
      ElementsAre("course-c1@1 course.defined", "course-c1@2 course.subscribed #student-s1",
                  "student-s1@1 student.registered", "course-c2@1 course.subscribed #student-s1"));
}

// --- two tags of one category

struct Account {
  static constexpr std::string_view category = "account";
};
struct Moved {
  static constexpr EventType event_type{"money.moved", 1, local};
  Id<Account> from;
  Id<Account> to;
  std::int64_t amount = 0;
  static constexpr auto tags = stela::tags(&Moved::from, &Moved::to);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(from), CEREAL_NVP(to), CEREAL_NVP(amount));
  }
};
/// The same before it had tags.
struct PlainMoved {
  static constexpr EventType event_type{"money.moved", 1, local};
  Id<Account> from;
  Id<Account> to;
  std::int64_t amount = 0;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(from), CEREAL_NVP(to), CEREAL_NVP(amount));
  }
};
struct Balance {
  using Events = EventSet<Moved>;
  Id<Account> account;
  static constexpr auto tags = stela::tags(&Balance::account);
  std::int64_t amount = 100;
  void apply(const Moved& event) {
    if (event.from == account) amount -= event.amount;
    if (event.to == account) amount += event.amount;
  }
};
/// What went from one account to another, or back.
struct Between {
  using Events = EventSet<Moved>;
  Id<Account> one;
  Id<Account> other;
  static constexpr auto tags = stela::tags(&Between::one, &Between::other);
  int moves = 0;
  void apply(const Moved&) { ++moves; }
};

class DecisionsOfTwoAccounts : public Decisions {
 protected:
  const Id<Account> ann = Id<Account>::from("ann");
  const Id<Account> bob = Id<Account>::from("bob");
  const Id<Account> eve = Id<Account>::from("eve");

  std::int64_t balance(const Id<Account>& account) {
    std::int64_t amount = 0;
    decide(store, Balance{account},
           [&](Decision&, const Balance& balance) { amount = balance.amount; });
    return amount;
  }
};

TEST_F(DecisionsOfTwoAccounts, SeeTheEventsOfEach) {
  decide(store, Balance{ann}, [&](Decision& decision, const Balance&) {
    decision.record(Moved{ann, bob, 30});
    EXPECT_EQ(decision.read(Balance{bob}).amount, 130);
    EXPECT_EQ(decision.read(Between{bob, ann}).moves, 1);
    decision.record(Moved{eve, ann, 5});
    decision.record(Moved{bob, bob, 7});
  });

  EXPECT_EQ(balance(ann), 75);
  EXPECT_EQ(balance(bob), 130);
  decide(store, Between{ann, bob}, Between{bob, eve}, Between{bob, bob},
         [](Decision&, const Between& both, const Between& none, const Between& same) {
           EXPECT_EQ(both.moves, 1);
           EXPECT_EQ(none.moves, 0);
           EXPECT_EQ(same.moves, 2);
         });
}

TEST_F(DecisionsOfTwoAccounts, ConflictIfEitherChanges) {
  for (const Moved& moved : {Moved{ann, eve, 1}, Moved{eve, ann, 1}}) {
    int runs = 0;
    decide(store, Balance{ann}, [&](Decision& decision, const Balance&) {
      if (runs++ == 0) {
        decide(store, Balance{eve}, [&](Decision& inner, const Balance&) { inner.record(moved); });
      }
      decision.record(Moved{bob, eve, 1});
    });
    EXPECT_EQ(runs, 2);
  }
  int runs = 0;
  decide(store, Between{ann, bob}, [&](Decision& decision, const Between&) {
    if (runs++ == 0) {
      decide(store, Balance{eve}, [&](Decision& inner, const Balance&) {
        inner.record(Moved{ann, eve, 1});
      });
    }
    decision.record(Moved{ann, bob, 1});
  });
  EXPECT_EQ(runs, 1);
}

TEST_F(DecisionsOfTwoAccounts, RefuseHistoryThatStandsInTheStreamOfOne) {
  UnitOfWork old{store};
  old.append(ann.stream(), ExpectedVersion::any(), PlainMoved{ann, bob, 30});
  old.commit();

  EXPECT_THROW((void)balance(bob), TagsMissing);
  EXPECT_EQ(add_tags<Moved>(store).tagged, 1);
  EXPECT_EQ(balance(ann), 70);
  EXPECT_EQ(balance(bob), 130);
}

// --- in units of work

TEST_F(Decisions, OfOneUnitDoNotBothTakeTheLastSeat) {
  decide(store, DefineCourse{course, 1});
  UnitOfWork unit{store};
  decide(unit, Subscribe{course, student});
  EXPECT_THROW(decide(unit, Subscribe{course, StudentId::from("s2")}), Refused);
  unit.commit();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(Decisions, OfAUnitConflictAtItsCommit) {
  decide(store, DefineCourse{course, 1});
  UnitOfWork unit{store};
  decide(unit, Subscribe{course, student});
  decide(store, Subscribe{course, StudentId::from("s2")});
  try {
    unit.commit();
    FAIL() << "committed";
  } catch (const ConditionConflict& e) {
    EXPECT_EQ(e.position(), GlobalSequence{2});
    EXPECT_EQ(e.item(), 0U);
  }
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(Decisions, OfAUnitReadOneBoundaryTwiceWithoutAConflict) {
  decide(store, DefineCourse{course, 2});
  UnitOfWork unit{store};
  decide(unit, Subscribe{course, student});
  decide(unit, Subscribe{course, StudentId::from("s2")});
  unit.commit();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
}

TEST_F(Decisions, ThatThrowAfterRecordingSpoilTheirUnit) {
  UnitOfWork unit{store};
  EXPECT_THROW(decide(unit, Seats{course},
                      [&](Decision& decision, const Seats&) {
                        decision.record(Subscribed{course, student});
                        throw Refused{"no"};
                      }),
               Refused);
  EXPECT_THROW(unit.commit(), UsageError);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
}

TEST_F(Decisions, InATransactionSeeWhatItWroteAndCommitWithIt) {
  store.transact([&](Transaction& transaction) {
    decide(transaction, DefineCourse{course, 1});
    decide(transaction, Subscribe{course, student});
    EXPECT_THROW(decide(transaction, Subscribe{course, StudentId::from("s2")}), Refused);
  });
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

// --- history

struct Plain {
  static constexpr EventType event_type{"course.subscribed", 1, local};
  CourseId course;
  StudentId student;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(course), CEREAL_NVP(student));
  }
};

TEST_F(Decisions, RefuseToMissHistoryWithoutTags) {
  UnitOfWork old{store};
  old.append(course.stream(), ExpectedVersion::any(), Plain{course, student});
  old.commit();

  try {
    decide(store, Load{student}, [](Decision&, const Load&) {});
    FAIL() << "decided";
  } catch (const TagsMissing& e) {
    EXPECT_THAT(e.what(), HasSubstr("'course.subscribed'"));
  }
  // The stream is a tag without being declared.
  decide(store, Seats{course}, [](Decision&, const Seats& seats) { EXPECT_EQ(seats.taken, 1); });
}

TEST_F(Decisions, ShutOutAProgramThatDoesNotTag) {
  decide(store, Load{student}, [](Decision&, const Load&) {});
  UnitOfWork old{store};
  old.append(course.stream(), ExpectedVersion::any(), Plain{course, student});
  EXPECT_THROW(old.commit(), UsageError);
}

class TagsForHistory : public Decisions {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) {
      UnitOfWork old{store};
      old.append(course.stream(), ExpectedVersion::any(),
                 Plain{course, StudentId::from("s" + std::to_string(i))});
      old.commit();
    }
  }
};

TEST_F(TagsForHistory, MakeDecisionsSeeIt) {
  const AddedTags added = add_tags<Subscribed>(store);

  EXPECT_EQ(added.events, 3);
  EXPECT_EQ(added.tagged, 3);
  EXPECT_TRUE(added.finished);
  decide(store, Load{student}, [](Decision&, const Load& load) { EXPECT_EQ(load.courses, 1); });
  EXPECT_THAT(lines(), ElementsAre("course-c1@1 course.subscribed #student-s0",
                                   "course-c1@2 course.subscribed #student-s1",
                                   "course-c1@3 course.subscribed #student-s2"));
  EXPECT_EQ(add_tags<Subscribed>(store).tagged, 0);
  int problems = 0;
  StoreOperations{store}.verify([&](const Problem&) { ++problems; });
  EXPECT_EQ(problems, 0);
}

TEST_F(TagsForHistory, ContinueWhereTheyWereInterrupted) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(add_tags<Subscribed>(store, {.stop = stop.get_token()}).finished);
  EXPECT_THROW(decide(store, Load{student}, [](Decision&, const Load&) {}), TagsMissing);

  EXPECT_EQ(add_tags<Subscribed>(store).tagged, 3);
  decide(store, Load{student}, [](Decision&, const Load&) {});
}

TEST_F(TagsForHistory, MakeADecisionThatReadBeforeRunAgain) {
  int runs = 0;
  decide(store, Seats{course}, [&](Decision& decision, const Seats&) {
    if (runs++ == 0) add_tags<Subscribed>(store);
    decision.record(Subscribed{course, student});
  });
  EXPECT_EQ(runs, 2);
}

TEST_F(TagsForHistory, CanBeGivenUp) {
  add_tags<Subscribed>(store);
  UnitOfWork refused{store};
  refused.append(course.stream(), ExpectedVersion::any(), Plain{course, student});
  EXPECT_THROW(refused.commit(), UsageError);

  EXPECT_TRUE(forget_tags(store, "course.subscribed", "student"));
  EXPECT_TRUE(forget_tags(store, "course.subscribed", "course"));
  EXPECT_FALSE(forget_tags(store, "course.subscribed", "course"));
  UnitOfWork old{store};
  old.append(course.stream(), ExpectedVersion::any(), Plain{course, student});
  old.commit();
  EXPECT_THROW(decide(store, Load{student}, [](Decision&, const Load&) {}), TagsMissing);
}

struct NewerSubscribed {
  static constexpr EventType event_type{"course.subscribed", 2, local};
  using Supersedes = Subscribed;
  static NewerSubscribed upcast(Subscribed old) { return {old.course, old.student}; }
  CourseId course;
  StudentId student;
  static constexpr auto tags = stela::tags(&NewerSubscribed::course, &NewerSubscribed::student);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(course), CEREAL_NVP(student));
  }
};

TEST_F(Decisions, ThrowAtAVersionThatTheyDoNotKnow) {
  UnitOfWork newer{store};
  newer.append(course.stream(), ExpectedVersion::any(), NewerSubscribed{course, student});
  newer.commit();
  EXPECT_THROW(decide(store, Load{student}, [](Decision&, const Load&) {}), UnknownEvent);
}

// --- named tags

struct UserRegistered {
  static constexpr EventType event_type{"user.registered", 1, local};
  std::string name;
  std::int64_t number = 0;
  static constexpr auto tags = stela::tags(stela::tag<"username">(&UserRegistered::name),
                                           stela::tag<"invoice_number">(&UserRegistered::number));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(name), CEREAL_NVP(number));
  }
};

TEST_F(Decisions, TagWithValuesThatAreNoIds) {
  decide(store, [&](Decision& decision) { decision.record(UserRegistered{"jane", 7}); });
  EXPECT_THAT(lines(), ElementsAre("username-jane@1 user.registered #invoice_number-7"));
  EXPECT_THROW(decide(store,
                      [&](Decision& decision) {
                        decision.record(UserRegistered{"j d", 8});
                      }),
               UsageError);
}

TEST_F(Decisions, AreNotNeededToTagAnEventOfAGivenStream) {
  UnitOfWork unit{store};
  unit.append(StreamId::parse("course-c9"), ExpectedVersion::any(), Subscribed{course, student});
  unit.commit();
  EXPECT_THAT(lines(), ElementsAre("course-c9@1 course.subscribed #course-c1 student-s1"));
}

TEST_F(Decisions, OfManyThreadsFillACourseExactly) {
  test::TempDir dir;
  Store file = sqlite::open(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed});
  constexpr int threads = 8;
  constexpr int seats = 30;
  decide(file, DefineCourse{course, seats});
  std::atomic<int> taken{0};
  std::vector<std::thread> deciders;
  for (int number = 0; number < threads; ++number) {
    deciders.emplace_back([&, number] {
      for (int i = 0; i < 2 * seats / threads + 1; ++i) {
        try {
          decide(file, Subscribe{course, StudentId::from(std::to_string(number * 100 + i))});
          ++taken;
        } catch (const Refused&) {
        }
      }
    });
  }
  for (std::thread& decider : deciders) decider.join();
  EXPECT_EQ(taken, seats);
  EXPECT_EQ(file.last_sequence(), GlobalSequence{seats + 1});
}

}  // namespace
}  // namespace stela::decision_test
