// Appends with conditions that are carried out together.
#include "database/postgres/connection.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/async.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::postgres::condition_test {
namespace {

/// What is appended to a stream, and what must not be there.
struct Attempt {
  /// Not set: it only checks.
  std::optional<StreamId> stream;
  std::vector<Tag> tags = {};
  std::optional<QueryItem> refuses = {};
  std::size_t events = 1;
};

class PostgresConditions : public ::testing::Test {
 protected:
  /// Carries the appends out in one turn, in this order. For each, whether it was appended.
  std::vector<bool> append_together(const std::vector<Attempt>& attempts) {
    std::deque<AsyncStore::Task> posted;
    std::vector<bool> appended(attempts.size());
    AsyncStore async{store, [&](AsyncStore::Task task) { posted.push_back(std::move(task)); }};
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      const Attempt& attempt = attempts[i];
      NewEvent event{"noted", 1, false, "{}"};
      event.tags = attempt.tags;
      const std::vector<NewEvent> events(attempt.events, event);
      std::vector<StreamAppend> streams;
      if (attempt.stream) streams.push_back({*attempt.stream, ExpectedVersion::any(), events});
      AppendCondition condition;
      if (attempt.refuses) condition = {.query = {.items = {*attempt.refuses}}, .after = last};
      const AppendRequest request{.streams = streams,
                                  .condition = attempt.refuses ? &condition : nullptr};
      async.append(OwnedAppend{request}, [&, i](const std::exception_ptr& error, AppendResult) {
        appended[i] = error == nullptr;
        if (error == nullptr) return;
        EXPECT_THROW(std::rethrow_exception(error), ConditionConflict);
      });
    }
    while (!posted.empty()) {
      posted.front()();
      posted.pop_front();
    }
    last = store.last_sequence();
    return appended;
  }
  int groups() {
    Connection connection{{.conninfo = server.url()}};
    const Result row = connection.query_text("SELECT count(*) FROM stela.append_groups", {});
    return std::stoi(std::string{row.bytes(0, 0)});
  }
  static Tag tag(const std::string& key) { return Tag::of("seat", key); }

  test::PostgresServer server;
  Store store = open(server.url());
  GlobalSequence last = {};
};

TEST_F(PostgresConditions, OfThoseWhoOnlyCheckAreJudgedBesideAnEvent) {
  const StreamId stream = StreamId::of("note", "one");
  const Attempt event{stream, {tag("a")}};
  const Attempt check{std::nullopt, {}, QueryItem{.tags = {tag("b")}}};
  EXPECT_EQ(append_together({check, event}), std::vector<bool>({true, true}));
  EXPECT_EQ(append_together({event, check}), std::vector<bool>({true, true}));
  const Attempt refused{std::nullopt, {}, QueryItem{.tags = {tag("a")}}};
  EXPECT_EQ(append_together({event, refused}), std::vector<bool>({true, false}));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
}

TEST_F(PostgresConditions, ThatDontMeetShareAGroup) {
  std::vector<Attempt> attempts;
  for (int i = 0; i < 20; ++i) {
    const Tag one = tag(std::to_string(i));
    attempts.push_back({StreamId::of("note", std::to_string(i)), {one}, QueryItem{.tags = {one}}});
  }
  const int before = groups();
  EXPECT_EQ(append_together(attempts), std::vector<bool>(attempts.size(), true));
  EXPECT_EQ(groups(), before + 1);
  // Now they are broken by what stands in the database, each by its own.
  attempts[7].refuses->tags = {tag("another")};
  const auto first = last;
  last = {};
  std::vector<bool> only_one(attempts.size());
  only_one[7] = true;
  EXPECT_EQ(append_together(attempts), only_one);
  EXPECT_EQ(last.value(), first.value() + 1);
}

// Whoever has too much to compare with goes into the next group, and is judged by the database.
TEST_F(PostgresConditions, WithMuchToCompareFollowEachOther) {
  std::vector<Attempt> attempts;
  QueryItem wide;
  for (int i = 0; i < 100; ++i) wide.types.push_back("other" + std::to_string(i));
  for (int i = 0; i < 64; ++i) {
    attempts.push_back(
        {StreamId::of("note", std::to_string(i)), {tag(std::to_string(i))}, wide, 100});
  }
  attempts.back().refuses->types.back() = "noted";
  std::vector<bool> all_but_the_last(attempts.size(), true);
  all_but_the_last.back() = false;
  const int before = groups();
  EXPECT_EQ(append_together(attempts), all_but_the_last);
  EXPECT_GT(groups(), before + 1);
  EXPECT_LT(groups(), before + 40);
}

TEST_F(PostgresConditions, LetOneOfManyRivalsAppend) {
  std::vector<Attempt> attempts;
  for (int i = 0; i < 20; ++i) {
    attempts.push_back({StreamId::of("note", std::to_string(i)),
                        {tag(std::to_string(i % 2))},
                        QueryItem{.tags = {tag(std::to_string(i % 2))}}});
  }
  std::vector<bool> only_the_first(attempts.size());
  only_the_first[0] = only_the_first[1] = true;
  EXPECT_EQ(append_together(attempts), only_the_first);
}

// An event of the same group breaks a condition if and only if it does from the database.
TEST_F(PostgresConditions, AreBrokenByTheGroupAsByTheDatabase) {
  const StreamId stream = StreamId::of("note", "1");
  const std::vector<std::vector<std::string>> types{{}, {"noted"}, {"other"}, {"other", "noted"}};
  const std::vector<std::vector<Tag>> tags{{},
                                           {tag("a")},
                                           {tag("b")},
                                           {tag("a"), tag("b")},
                                           {stream},
                                           {StreamId::of("note", "2")},
                                           {stream, tag("a")},
                                           {tag("b"), stream}};
  for (const auto& of_event : tags) {
    for (const auto& item_types : types) {
      for (const auto& item_tags : tags) {
        const QueryItem item{item_types, item_tags};
        const Attempt event{stream, of_event};
        const Attempt with_condition{StreamId::of("other", "1"), {tag("last")}, item};
        const auto start = last;
        append_together({event});
        last = start;
        const bool holds = append_together({with_condition}).front();
        const std::vector<bool> both = append_together({event, with_condition});
        EXPECT_TRUE(both.front());
        EXPECT_EQ(both.back(), holds) << item_types.size() << ' ' << item_tags.size();
      }
    }
  }
}

TEST_F(PostgresConditions, KeepTheirNumbersBesideRepeatedIds) {
  append_together({{StreamId::of("note", "1"), {tag("a")}}});
  const NewEvent event{"noted", 1, false, "{}"};
  const StreamId stream = StreamId::of("note", "2");
  const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
  const AppendCondition of_two{.query = {.items = {{.tags = {tag("x")}}, {.tags = {tag("y")}}}},
                               .after = last};
  const AppendRequest with_id{.streams = {&one, 1}, .append_id = "id", .condition = &of_two};
  store.append(with_id);
  const AppendCondition of_three{
      .query = {.items = {{.tags = {tag("x")}}, {.tags = {tag("y")}}, {.tags = {tag("a")}}}},
      .after = GlobalSequence{0}};
  const AppendRequest broken{.streams = {&one, 1}, .condition = &of_three};
  std::deque<AsyncStore::Task> posted;
  AsyncStore async{store, [&](AsyncStore::Task task) { posted.push_back(std::move(task)); }};
  bool is_repeated = false;
  std::optional<std::size_t> item;
  async.append(OwnedAppend{with_id}, [&](const std::exception_ptr& error, AppendResult result) {
    is_repeated = error == nullptr && result.repeated;
  });
  async.append(OwnedAppend{broken}, [&](const std::exception_ptr& error, AppendResult) {
    try {
      if (error != nullptr) std::rethrow_exception(error);
    } catch (const ConditionConflict& e) {
      item = e.item();
    }
  });
  while (!posted.empty()) {
    posted.front()();
    posted.pop_front();
  }
  EXPECT_TRUE(is_repeated);
  EXPECT_EQ(item, 2U);
}

}  // namespace
}  // namespace stela::postgres::condition_test
