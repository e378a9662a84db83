// What every event store does with the condition of an append, and with tags that types declare.
#include "contract/tagged_events.hpp"

#include <stela/framework.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace stela::condition_contract {
namespace {

using test::ConditionContract;
using test::DeclaredTagsContract;
using test::item;
using test::lines;
using test::tags_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_P(ConditionContract, HoldsIfNothingMatchesAfterThePosition) {
  enrol();
  const Query query{{item({"subscribed"}, {"student-s1"})}};

  EXPECT_EQ(outcome({query, GlobalSequence{3}}), "4 matches 0");
  EXPECT_EQ(outcome({query, GlobalSequence{4}}), "appended 7");
  EXPECT_EQ(outcome({query, GlobalSequence{6}}), "appended 8");
}

TEST_P(ConditionContract, DoesNotHoldAtAPositionAfterTheLastEvent) {
  enrol();
  const Query query{{item({"subscribed"}, {"student-s9"})}};

  EXPECT_EQ(outcome({query, GlobalSequence{6}}), "appended 7");
  EXPECT_EQ(outcome({query, GlobalSequence{8}}), "after 8, head 7");
  EXPECT_EQ(outcome({query, GlobalSequence::max()}), "after 9223372036854775807, head 7");
  store->transact([&](Transaction& transaction) {
    const AppendCondition beyond{query, GlobalSequence{8}};
    EXPECT_THROW(transaction.append({.condition = &beyond}), ConditionConflict);
  });
  EXPECT_EQ(store->last_sequence(), GlobalSequence{7});
}

TEST_P(ConditionContract, AnswersARepeatedIdWhoseConditionHasGone) {
  enrol();
  const Query query{{item({"subscribed"}, {"student-s9"})}};
  const AppendResult first =
      append_if({query, GlobalSequence{6}}, "course-c1", {"student-s9"}, "once");
  AppendCondition gone{query, GlobalSequence{1000}, 77};
  store->transact([&](Transaction& transaction) {
    roll_back(transaction, [&](Transaction& inner) {
      append_tagged(inner, "other-1", "a", {});
      gone.outcome = inner.standpoint().outcome;
    });
  });

  const AppendResult again = append_if(gone, "course-c1", {"student-s9"}, "once");
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.first, first.first);
  EXPECT_THROW(append_if(gone, "course-c1", {"student-s9"}, "twice"), ConditionConflict);
}

// --- positions in transactions

TEST_P(ConditionContract, DoesNotHoldOnceWhatItWasReadInIsRolledBack) {
  enrol();
  Standpoint standpoint;
  roll_back(*store, [&](Transaction& transaction) {
    append_tagged(transaction, "course-c1", "a", {});
    standpoint = transaction.standpoint();
    const AppendCondition holds = at(standpoint, "student-s9");
    EXPECT_NO_THROW(transaction.append({.condition = &holds}));
  });
  EXPECT_EQ(standpoint.head, GlobalSequence{7});
  // The same sequence, and an event that the condition would have to see.
  append_tagged("course-c2", "subscribed", {"student-s9"});

  EXPECT_EQ(outcome(at(standpoint, "student-s9")), "rolled back, head 7");
  EXPECT_EQ(outcome(at(standpoint, "student-s8")), "rolled back, head 7");
}

TEST_P(ConditionContract, HoldsOnceWhatItWasReadInIsCommitted) {
  enrol();
  Standpoint standpoint;
  store->transact([&](Transaction& transaction) {
    transaction.transact([&](Transaction& inner) {
      append_tagged(inner, "course-c1", "a", {});
      standpoint = inner.standpoint();
    });
    const AppendCondition holds = at(standpoint, "student-s9");
    EXPECT_NO_THROW(transaction.append({.condition = &holds}));
  });

  EXPECT_EQ(outcome(at(standpoint, "student-s9")), "appended 8");
}

TEST_P(ConditionContract, DoesNotHoldOnceItsSavepointIsRolledBack) {
  enrol();
  store->transact([&](Transaction& transaction) {
    append_tagged(transaction, "course-c1", "a", {});
    const Standpoint outside = transaction.standpoint();
    Standpoint inside;
    roll_back(transaction, [&](Transaction& inner) {
      // Nothing of the savepoint's own is there yet.
      inside = inner.standpoint();
      EXPECT_EQ(inside.outcome, outside.outcome);
      inner.transact(
          [&](Transaction& innermost) { append_tagged(innermost, "course-c1", "a", {}); });
      inside = inner.standpoint();
      const AppendCondition holds = at(inside, "student-s9");
      EXPECT_NO_THROW(inner.append({.condition = &holds}));
    });
    append_tagged(transaction, "course-c2", "subscribed", {"student-s9"});

    const AppendCondition gone = at(inside, "student-s9");
    EXPECT_THROW(transaction.append({.condition = &gone}), ConditionConflict);
    const AppendCondition changed = at(outside, "student-s9");
    EXPECT_THROW(transaction.append({.condition = &changed}), ConditionConflict);
    const AppendCondition holds = at(outside, "student-s8");
    EXPECT_NO_THROW(transaction.append({.condition = &holds}));
  });
}

TEST_P(ConditionContract, ReadInATransactionThatAppendedNothingOutlivesIt) {
  enrol();
  Standpoint standpoint;
  roll_back(*store, [&](Transaction& transaction) { standpoint = transaction.standpoint(); });

  EXPECT_EQ(standpoint.outcome, nullptr);
  EXPECT_EQ(outcome(at(standpoint, "student-s9")), "appended 7");
}

TEST_P(ConditionContract, DoesNotHoldOnceTheTagsThatItRestsOnAreRolledBack) {
  enrol();
  static constexpr std::array<TagDeclaration, 1> student{{{"student", true}}};
  const TagNeed need{"visited", "student", student};
  Standpoint standpoint;
  store->transact([&](Transaction& transaction) {
    roll_back(transaction, [&](Transaction& inner) { standpoint = inner.standpoint({&need, 1}); });
    // Nobody is held to the tags any more, and this isn't seen by the condition.
    append_tagged(transaction, "course-c1", "visited", {});
    const AppendCondition gone{{{item({"visited"}, {"student-s1"})}},
                               standpoint.head,
                               standpoint.tag_epoch,
                               standpoint.outcome};
    EXPECT_THROW(transaction.append({.condition = &gone}), ConditionConflict);
  });
}

TEST_P(ConditionContract, WithoutAPositionNothingMayMatchAtAll) {
  enrol();

  EXPECT_EQ(outcome({{{item({"subscribed"}, {"student-s1"})}}, {}}), "3 matches 0");
  EXPECT_EQ(outcome({{{item({"subscribed"}, {"student-s3"})}}, {}}), "appended 7");
  EXPECT_EQ(outcome({{{item({}, {"course-c9"})}}, {}}), "appended 8");
  EXPECT_EQ(outcome({{{item({}, {"course-c1"})}}, {}}), "1 matches 0");
}

TEST_P(ConditionContract, NamesTheFirstEventThatMatchesAndItsFirstItem) {
  enrol();
  const Query query{{item({}, {"student-s2"}), item({"renamed"}, {}), item({}, {"student-s1"}),
                     item({"subscribed"}, {"term-7"})}};

  EXPECT_EQ(outcome({query, GlobalSequence{0}}), "3 matches 2");
  EXPECT_EQ(outcome({query, GlobalSequence{3}}), "4 matches 2");
  EXPECT_EQ(outcome({query, GlobalSequence{4}}), "5 matches 0");
  EXPECT_EQ(outcome({query, GlobalSequence{5}}), "6 matches 1");
  EXPECT_EQ(outcome({query, GlobalSequence{6}}), "appended 7");
}

TEST_P(ConditionContract, ASingleStreamCountsAsATag) {
  enrol();

  EXPECT_EQ(outcome({{{item({}, {"course-c1"})}}, GlobalSequence{4}}), "5 matches 0");
  EXPECT_EQ(outcome({{{item({"renamed"}, {"student-s1"})}}, GlobalSequence{4}}), "6 matches 0");
  EXPECT_EQ(outcome({{{item({"renamed"}, {"course-c1"})}}, GlobalSequence{0}}), "appended 7");
}

TEST_P(ConditionContract, MatchesTwoTagsOfOneCategory) {
  append_tagged("account-a", "moved", {"account-b"});
  append_tagged("account-b", "moved", {"account-c"});
  const Query both{{item({"moved"}, {"account-a", "account-b"})}};
  const Query others{{item({"moved"}, {"account-a", "account-c"})}};

  EXPECT_EQ(outcome({both, {}}), "1 matches 0");
  EXPECT_EQ(outcome({{{item({}, {"account-c", "account-b"})}}, GlobalSequence{1}}), "2 matches 0");
  EXPECT_EQ(outcome({both, GlobalSequence{1}}), "appended 3");
  EXPECT_EQ(outcome({others, {}}), "appended 4");
}

TEST_P(ConditionContract, FindsWhatAScanFindsWhateverTheTags) {
  std::mt19937 random{7};
  const auto any = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  const auto tag = [&] { return "ab"[any(2)] + std::string{"-"} + std::to_string(any(4)); };
  const auto some_tags = [&](int most) {
    std::vector<std::string> tags;
    for (int i = any(most + 1); i > 0; --i) tags.push_back(tag());
    return tags;
  };
  for (int i = 0; i < 120; ++i) append_tagged(tag(), any(2) == 0 ? "x" : "y", some_tags(3));

  for (int i = 0; i < 150; ++i) {
    Query query;
    for (int items = 1 + any(3); items > 0; --items) {
      query.items.push_back(item(
          any(2) == 0 ? std::vector<std::string>{"x"} : std::vector<std::string>{}, some_tags(3)));
    }
    const GlobalSequence after{any(121)};
    std::vector<std::int64_t> expected;
    for (const StoredEvent& event : store->read_all({.with_tags = true})) {
      const bool is_match = event.sequence > after &&
                            std::any_of(query.items.begin(), query.items.end(),
                                        [&](const QueryItem& one) { return matches(one, event); });
      if (is_match) expected.push_back(event.sequence.value());
    }
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      std::vector<std::int64_t> found;
      for (const StoredEvent& event :
           store->read(query, {.after = after, .direction = direction})) {
        found.push_back(event.sequence.value());
      }
      if (direction == Direction::backward) std::reverse(found.begin(), found.end());
      EXPECT_EQ(found, expected) << "query " << i;
    }
    const AppendCondition condition{query, after};
    try {
      store->append({.condition = &condition});
      EXPECT_THAT(expected, IsEmpty()) << "query " << i;
    } catch (const ConditionConflict& e) {
      ASSERT_FALSE(expected.empty()) << "query " << i;
      EXPECT_EQ(e.position().value(), expected.front()) << "query " << i;
    }
  }
}

TEST_P(ConditionContract, TypesAloneAreSearchedAfterThePosition) {
  enrol();
  const Query query{{item({"defined"}, {})}};

  EXPECT_EQ(outcome({query, GlobalSequence{0}}), "1 matches 0");
  EXPECT_EQ(outcome({query, GlobalSequence{1}}), "2 matches 0");
  EXPECT_EQ(outcome({query, GlobalSequence{2}}), "appended 7");
  EXPECT_EQ(outcome({Query::all(), GlobalSequence{6}}), "7 matches 0");
  EXPECT_THROW(outcome({query, {}}), UsageError);
  EXPECT_THROW(outcome({Query::all(), {}}), UsageError);
  EXPECT_THROW(outcome({{}, GlobalSequence{0}}), UsageError);
}

TEST_P(ConditionContract, EventsOfTheAppendItselfDoNotCount) {
  const AppendCondition condition{{{item({"subscribed"}, {"student-s1"})}}, {}};

  EXPECT_EQ(append_if(condition, "course-c1", {"student-s1"}).first, GlobalSequence{1});
  EXPECT_THROW(append_if(condition, "course-c2", {"student-s1"}), ConditionConflict);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{1});
}

TEST_P(ConditionContract, ChecksTheIdThenTheConditionThenTheVersions) {
  const AppendCondition nothing{{{item({}, {"course-c1"})}}, {}};
  const StreamId stream = StreamId::parse("course-c1");
  const NewEvent event{.type = "a", .payload = "{}"};
  const StreamAppend none{stream, ExpectedVersion::none(), {&event, 1}};
  const AppendRequest request{.streams = {&none, 1}, .append_id = "once", .condition = &nothing};

  EXPECT_FALSE(store->append(request).repeated);
  EXPECT_TRUE(store->append(request).repeated);
  EXPECT_THROW(store->append({.streams = {&none, 1}, .condition = &nothing}), ConditionConflict);
  EXPECT_THROW(store->append({.streams = {&none, 1}}), ConcurrencyConflict);
}

TEST_P(ConditionContract, ChecksWithoutAnyEvent) {
  enrol();
  const AppendCondition holds{{{item({}, {"course-c1"})}}, GlobalSequence{5}};
  const AppendCondition fails{{{item({}, {"course-c1"})}}, GlobalSequence{4}};

  EXPECT_NO_THROW(store->append({.condition = &holds}));
  EXPECT_THROW(store->append({.condition = &fails}), ConditionConflict);
}

TEST_P(ConditionContract, KeepsTheOrderOfEventsAcrossStreams) {
  const StreamId course = StreamId::parse("course-c1");
  const StreamId student = StreamId::parse("student-s1");
  const NewEvent a{.type = "a", .payload = "{}"};
  const NewEvent b{.type = "b", .payload = "{}"};
  const std::array<StreamAppend, 3> appends{StreamAppend{course, ExpectedVersion::none(), {&a, 1}},
                                            StreamAppend{student, ExpectedVersion::none(), {&b, 1}},
                                            StreamAppend{course, ExpectedVersion::any(), {&b, 1}}};

  const AppendResult result = store->append({.streams = appends});
  EXPECT_THAT(result.versions, ElementsAre(StreamVersion{1}, StreamVersion{1}, StreamVersion{2}));
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 course-c1@1 a", "2 student-s1@1 b", "3 course-c1@2 b"));
}

TEST_P(ConditionContract, PlainAppendsCountAgainstADecision) {
  enrol();
  const GlobalSequence before = store->last_sequence();
  append("course-c1", {"moved"});

  EXPECT_EQ(outcome({{{item({}, {"course-c1"})}}, before}), "7 matches 0");
}

TEST_P(ConditionContract, InATransactionItSeesWhatThatWrote) {
  store->transact([&](Transaction& transaction) {
    const AppendCondition nothing{{{item({}, {"course-c1"})}}, {}};
    const StreamId stream = StreamId::parse("course-c1");
    const NewEvent event{.type = "a", .payload = "{}"};
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    const AppendRequest request{.streams = {&one, 1}, .condition = &nothing};
    transaction.append(request);
    EXPECT_THROW(transaction.append(request), ConditionConflict);
  });
  EXPECT_EQ(store->last_sequence(), GlobalSequence{1});
}

TEST_P(ConditionContract, NoTagIsForgottenByARolledBackSavepoint) {
  const AppendCondition nothing{{{item({}, {"student-s1"})}}, {}};
  const StreamId stream = StreamId::parse("course-c1");
  const std::vector<Tag> tags = tags_of({"student-s1"});
  const NewEvent event{.type = "a", .payload = "{}", .tags = tags};
  const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
  const AppendRequest request{.streams = {&one, 1}, .condition = &nothing};

  store->transact([&](Transaction& transaction) {
    EXPECT_THROW(transaction.transact([&](Transaction& inner) {
      inner.append(request);
      throw std::runtime_error{"no"};
    }),
                 std::runtime_error);
    transaction.append(request);
  });
  EXPECT_THAT(lines(store->read({{item({}, {"student-s1"})}})), ElementsAre("1 course-c1@1 a"));
}

TEST_P(ConditionContract, OfManyThreadsOneTakesTheSeat) {
  constexpr int threads = 8;
  constexpr int seats = 20;
  std::array<int, threads> taken{};
  std::vector<std::thread> deciders;
  for (int number = 0; number < threads; ++number) {
    deciders.emplace_back([&, number] {
      for (int seat = 0; seat < seats; ++seat) {
        const std::string tag = "seat-" + std::to_string(seat);
        try {
          append_if({{{item({"subscribed"}, {tag})}}, {}},
                    "guest-" + std::to_string(number * seats + seat), {tag});
          ++taken[static_cast<std::size_t>(number)];
        } catch (const ConditionConflict&) {
        }
      }
    });
  }
  for (std::thread& decider : deciders) decider.join();

  int sum = 0;
  for (const int one : taken) sum += one;
  EXPECT_EQ(sum, seats);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{seats});
  for (int seat = 0; seat < seats; ++seat) {
    EXPECT_EQ(read({{item({}, {"seat-" + std::to_string(seat)})}}).size(), 1U);
  }
}

/// Reads, appends, and rolls back at random; each condition is compared with the events themselves.
class ReadsAndRollbacks {
 public:
  explicit ReadsAndRollbacks(EventLog& store) : store_{store} {}

  void play(int steps) { play(store_, steps, 0); }
  int held = 0;
  int failed = 0;

 private:
  struct Seen {
    Standpoint standpoint;
    std::vector<EventId> events;
  };
  struct RollBack {};

  int any(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  std::string any_tag() { return "tag-" + std::to_string(any(6)); }

  static std::vector<EventId> events_of(EventLog& log, const Query& query = Query::all()) {
    std::vector<EventId> ids;
    for (const StoredEvent& event : log.read(query)) ids.push_back(event.id);
    return ids;
  }

  void play(EventLog& log, int steps, int depth) {
    for (int step = 0; step < steps; ++step) {
      const int what = any(8);
      if (what < 2) {
        append(log);
      } else if (what < 4) {
        reads_.push_back({log.standpoint(), events_of(log)});
      } else if (what < 6 && depth < 3) {
        nest(log, depth);
      } else if (!reads_.empty()) {
        check(log);
      }
    }
  }

  void append(EventLog& log) {
    const StreamId stream = StreamId::parse("other-1");
    const std::vector<Tag> tags = tags_of({any_tag()});
    const NewEvent event{.type = "a", .payload = "{}", .tags = tags};
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    log.append({.streams = {&one, 1}});
  }

  void nest(EventLog& log, int depth) {
    const bool fails = any(2) == 0;
    try {
      log.transact([&](Transaction& inner) {
        play(inner, any(6), depth + 1);
        if (fails) throw RollBack{};
      });
    } catch (const RollBack&) {
    }
  }

  void check(EventLog& log) {
    // One of the newest, as most others have long been overtaken.
    const auto back = static_cast<std::size_t>(any(std::min(8, static_cast<int>(reads_.size()))));
    const Seen& seen = reads_[reads_.size() - 1 - back];
    const Query query{{item({}, {any_tag()})}};
    const std::vector<EventId> now = events_of(log);
    const bool stands = seen.events.size() <= now.size() &&
                        std::equal(seen.events.begin(), seen.events.end(), now.begin());
    bool holds = stands;
    for (const EventId& match : events_of(log, query)) {
      holds =
          holds && std::find(seen.events.begin(), seen.events.end(), match) != seen.events.end();
    }
    const AppendCondition condition{query, seen.standpoint.head, seen.standpoint.tag_epoch,
                                    seen.standpoint.outcome};
    try {
      log.append({.condition = &condition});
      EXPECT_TRUE(holds) << "stands: " << stands;
      ++held;
    } catch (const ConditionConflict& e) {
      EXPECT_FALSE(holds) << e.what();
      EXPECT_EQ(e.cause() == ConditionConflict::Cause::event, stands) << e.what();
      ++failed;
    }
  }

  EventLog& store_;
  std::mt19937 random_{11};
  std::vector<Seen> reads_;
};

TEST_P(ConditionContract, HoldsExactlyIfWhatWasReadIsThereAndNothingElseMatches) {
  ReadsAndRollbacks play{*store};
  play.play(300);
  EXPECT_GT(play.held, 10);
  EXPECT_GT(play.failed, 10);
}

struct Room {
  static constexpr std::string_view category = "room";
};
struct Booked {
  static constexpr EventType event_type{"booked", 1, local};
  Id<Room> room;
  static constexpr auto tags = stela::tags(&Booked::room);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(room));
  }
};
struct Bookings {
  using Events = EventSet<Booked>;
  Id<Room> room;
  static constexpr auto tags = stela::tags(&Bookings::room);
  int count = 0;
  void apply(const Booked&) { ++count; }
};

TEST_P(ConditionContract, OfAUnitIsRefusedOnceItsPositionIsRolledBack) {
  const auto one = Id<Room>::from("1");
  const auto two = Id<Room>::from("2");
  const auto book = [](EventLog& log, const Id<Room>& room) {
    decide(log, Bookings{room},
           [&](Decision& decision, const Bookings&) { decision.record(Booked{room}); });
  };
  book(*store, two);
  store->transact([&](Transaction& transaction) {
    UnitOfWork unit{transaction};
    roll_back(transaction, [&](Transaction& inner) {
      book(inner, two);
      decide(unit, Bookings{one}, [&](Decision& decision, const Bookings& bookings) {
        EXPECT_EQ(decision.position(), GlobalSequence{2});
        if (bookings.count == 0) decision.record(Booked{one});
      });
    });
    book(transaction, one);
    try {
      unit.commit();
      FAIL() << "booked twice";
    } catch (const ConditionConflict& e) {
      EXPECT_EQ(e.cause(), ConditionConflict::Cause::rolled_back);
      EXPECT_TRUE(e.is_retryable());
    }
  });
  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 room-2@1 booked", "2 room-1@1 booked"));
}

TEST_P(ConditionContract, OfAUnitThatReadsAgainInASavepointHoldsIfThatIsReleased) {
  const auto one = Id<Room>::from("1");
  store->transact([&](Transaction& transaction) {
    UnitOfWork unit{transaction};
    transaction.transact([&](Transaction& inner) {
      append_tagged(inner, "other-1", "a", {});
      decide(unit, Bookings{one}, [](Decision&, const Bookings&) {});
    });
    roll_back(transaction, [&](Transaction& inner) { append_tagged(inner, "other-1", "a", {}); });
    append_tagged(transaction, "other-1", "a", {});
    decide(unit, Bookings{one}, [&](Decision& decision, const Bookings&) {
      EXPECT_EQ(decision.position(), GlobalSequence{1});
      decision.record(Booked{one});
    });
    unit.commit();
  });
  EXPECT_EQ(store->last_sequence(), GlobalSequence{3});
}

// --- what types declare

TEST_P(DeclaredTagsContract, AnAppenderWithOtherDeclarationsIsRefused) {
  EXPECT_EQ(try_append(both, {"student-s1"}), "");
  EXPECT_THAT(try_append(student, {"student-s2"}), HasSubstr("doesn't declare"));
  EXPECT_THAT(try_append(none, {}), HasSubstr("doesn't declare"));
  EXPECT_EQ(try_append(both, {"student-s1", "term-7"}), "");
  EXPECT_EQ(store->last_sequence(), GlobalSequence{2});
}

TEST_P(DeclaredTagsContract, AnEventOfUnknownTypeMustHaveWhatEveryEventHas) {
  EXPECT_EQ(try_append(std::nullopt, {}), "");
  EXPECT_EQ(try_append(both, {"student-s1"}), "");
  EXPECT_THAT(try_append(std::nullopt, {"term-7"}), HasSubstr("category 'student'"));
  EXPECT_EQ(try_append(std::nullopt, {"student-s2"}), "");
  EXPECT_EQ(try_append(std::nullopt, {}, "student-s3"), "");
}

TEST_P(DeclaredTagsContract, ATypeThatIsNewCoversAllOfHistory) {
  EXPECT_EQ(try_stand("student", both), "");
  EXPECT_EQ(try_append(both, {"student-s1"}), "");
  EXPECT_EQ(try_stand("student", both), "");
  EXPECT_EQ(try_stand("course", both), "");
}

TEST_P(DeclaredTagsContract, HistoryWithoutTagsIsMissed) {
  EXPECT_EQ(try_append(none, {}), "");

  EXPECT_THAT(try_stand("student", student), HasSubstr("category 'student'"));
  EXPECT_EQ(try_append(student, {"student-s1"}), "");
  EXPECT_THAT(try_stand("student", student), HasSubstr("tags add --type subscribed"));
  EXPECT_EQ(try_stand("course", student), "");
}

TEST_P(DeclaredTagsContract, OfSeveralTagsTheStreamIsOneAtMost) {
  append_declared(*store, "moved", none, {}, "account-a");
  EXPECT_EQ(try_stand("account", account, "moved"), "");

  EXPECT_THAT(try_stand("account", accounts, "moved"), HasSubstr("category 'account'"));
  append_declared(*store, "moved", accounts, {"account-a", "account-b"}, "account-a");
  EXPECT_THAT(try_stand("account", accounts, "moved"), HasSubstr("category 'account'"));
  EXPECT_THROW(append_declared(*store, "moved", account, {"account-a"}, "account-a"), UsageError);
  EXPECT_THROW(append_declared(*store, "moved", std::nullopt, {}, "account-a"), UsageError);
  append_declared(*store, "moved", std::nullopt, {"account-a"}, "account-a");
}

TEST_P(DeclaredTagsContract, ASecondTagOfACategoryIsMissedInHistory) {
  append_declared(*store, "moved", account, {"account-a"}, "bank-1");
  EXPECT_EQ(try_stand("account", account, "moved"), "");

  EXPECT_THAT(try_stand("account", accounts, "moved"), HasSubstr("category 'account'"));
  EXPECT_EQ(try_stand("account", account, "moved"), "");
  append_declared(*store, "moved", accounts, {"account-a", "account-b"}, "bank-1");
  EXPECT_THROW(append_declared(*store, "moved", account, {"account-a"}, "bank-1"), UsageError);
  EXPECT_EQ(store->tag_catalogue().types.at(0).since, 2);
}

TEST_P(DeclaredTagsContract, ATypeMayHaveATagThatSomeEventsLackLater) {
  static constexpr std::array<TagDeclaration, 1> some{{{"student", false}}};
  EXPECT_EQ(try_append(student, {"student-s1"}), "");
  EXPECT_THAT(try_append(std::nullopt, {}), HasSubstr("category 'student'"));
  EXPECT_EQ(try_append(some, {}), "");

  EXPECT_EQ(try_append(std::nullopt, {}), "");
  EXPECT_EQ(try_append(student, {"student-s2"}), "");
  EXPECT_EQ(try_stand("student", student), "");
  const TagCatalogue catalogue = store->tag_catalogue();
  ASSERT_EQ(catalogue.types.size(), 1U);
  EXPECT_FALSE(catalogue.types[0].always);
  EXPECT_EQ(catalogue.types[0].since, 0);
}

TEST_P(DeclaredTagsContract, OnceADecisionStandsOnATagAppendersMustCarryIt) {
  EXPECT_EQ(try_stand("student", student), "");
  EXPECT_THAT(try_append(none, {}), HasSubstr("doesn't declare"));
}

TEST_P(DeclaredTagsContract, WhatARolledBackAppendDeclaredIsForgotten) {
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    const std::vector<Tag> tags = tags_of({"student-s1"});
    const NewEvent event{
        .type = "subscribed", .payload = "{}", .tags = tags, .declared = std::span{student}};
    const StreamId stream = StreamId::parse("course-c1");
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    transaction.append({.streams = {&one, 1}});
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_EQ(try_append(none, {}), "");
}

TEST_P(DeclaredTagsContract, WhatARolledBackTransactionDeclaredBeforeASavepointIsForgotten) {
  roll_back(*store, [&](Transaction& transaction) {
    append_declared(transaction, "subscribed", student, {"student-s1"});
    roll_back(transaction, [&](Transaction& inner) {
      append_declared(inner, "visited", student, {"student-s1"});
    });
    // Learns again what the transaction declared.
    append_declared(transaction, "subscribed", student, {"student-s1"});
  });

  EXPECT_EQ(try_append(none, {}), "");
}

TEST_P(DeclaredTagsContract, WhatARolledBackSavepointDeclaredIsDeclaredAgain) {
  const TagNeed need{"subscribed", "student", student};
  store->transact([&](Transaction& transaction) {
    roll_back(transaction, [&](Transaction& inner) { inner.standpoint({&need, 1}); });
    transaction.standpoint({&need, 1});
  });

  EXPECT_THAT(try_append(none, {}), HasSubstr("doesn't declare"));
}

TEST_P(DeclaredTagsContract, WhatARefusedDecisionDeclaredIsForgotten) {
  EXPECT_EQ(try_append(none, {}), "");

  EXPECT_THAT(try_stand("student", student), HasSubstr("category 'student'"));
  EXPECT_EQ(try_append(none, {}), "");
  store->transact([&](Transaction& transaction) {
    const TagNeed need{"subscribed", "student", student};
    EXPECT_THROW((void)transaction.standpoint({&need, 1}), TagsMissing);
    append_declared(transaction, "subscribed", none, {});
  });
  EXPECT_EQ(try_append(none, {}), "");
}

TEST_P(DeclaredTagsContract, WhatARefusedAppendDeclaredIsForgotten) {
  enrol();
  store->transact([&](Transaction& transaction) {
    const AppendCondition fails{{{item({}, {"course-c1"})}}, {}};
    EXPECT_THROW(
        append_declared(transaction, "visited", student, {"student-s1"}, "course-c1", &fails),
        ConditionConflict);
    append_declared(transaction, "visited", none, {});
  });
  EXPECT_EQ(store->last_sequence(), GlobalSequence{7});
}

TEST_P(DeclaredTagsContract, ATypeIsCheckedThatGetsTheNumberOfARolledBackOne) {
  EXPECT_EQ(try_stand("student", student), "");
  roll_back(*store, [&](Transaction& transaction) {
    append_declared(transaction, "other", none, {});
    append_declared(transaction, "another", std::nullopt, {});
  });

  EXPECT_THAT(try_append(none, {}), HasSubstr("doesn't declare"));
  append_declared(*store, "other", none, {});
  EXPECT_THAT(try_append(std::nullopt, {}), HasSubstr("category 'student'"));
}

TEST_P(DeclaredTagsContract, EveryVersionOfATypeIsHeldToWhatOneDeclares) {
  const auto append_version = [&](int version, std::optional<std::span<const TagDeclaration>> all) {
    append("course-c1", ExpectedVersion::any(),
           {NewEvent{
               .type = "subscribed", .schema_version = version, .payload = "{}", .declared = all}});
  };
  append_version(2, std::nullopt);
  append_version(3, none);
  EXPECT_EQ(try_append(student, {"student-s1"}), "");

  EXPECT_THROW(append_version(2, std::nullopt), UsageError);
  EXPECT_THROW(append_version(3, none), UsageError);
}

}  // namespace
}  // namespace stela::condition_contract
