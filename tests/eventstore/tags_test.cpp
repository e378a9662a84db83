// How an SQLite store keeps tags: damage, transfer, other processes.
#include "eventstore/transfer.hpp"
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/sqlite_steps.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/tags.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stela::tags_test {
namespace {

using test::export_of;
using test::import_text;
using test::lines;
using test::problems_of;
using test::RawSqlite;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Tag> tags_of(const std::vector<std::string>& names) {
  std::vector<Tag> tags;
  for (const std::string& name : names) tags.push_back(Tag::parse(name));
  return tags;
}

QueryItem item(std::vector<std::string> types, const std::vector<std::string>& tags) {
  return {std::move(types), tags_of(tags)};
}

constexpr std::array<TagDeclaration, 1> student{{{"student", true}}};

class StoredTags : public test::TransferTest {
 protected:
  static void subscribe(EventLog& log, std::string_view course,
                        const std::vector<std::string>& tags) {
    const StreamId stream = StreamId::parse(course);
    const std::vector<Tag> all = tags_of(tags);
    const NewEvent event{.type = "subscribed",
                         .payload = "{}",
                         .tags = all,
                         .declared = std::span<const TagDeclaration>{student}};
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    log.append({.streams = {&one, 1}});
  }
  static void fill(EventLog& log) {
    subscribe(log, "course-c1", {"student-s1"});
    subscribe(log, "course-c2", {"student-s1", "term-7"});
  }
  static std::vector<std::string> of_student(EventLog& log) {
    return lines(log.read({{item({"subscribed"}, {"student-s1"})}}));
  }
  /// The problems after `sql`, which nothing refused.
  std::vector<std::string> problems_after(const std::string& sql) {
    const std::string path = dir.file("damaged.db");
    {
      Store store = sqlite::open(path, options());
      fill(store);
    }
    RawSqlite raw{path};
    raw.drop_triggers();
    raw.run(sql);
    Store store = sqlite::open(path, options());
    return problems_of(store);
  }
};

TEST_F(StoredTags, AreSound) {
  const std::string path = dir.file("sound.db");
  Store store = sqlite::open(path, options());
  fill(store);

  EXPECT_THAT(problems_of(store), IsEmpty());
}

TEST_F(StoredTags, AreAppendOnly) {
  const std::string path = dir.file("shop.db");
  Store store = sqlite::open(path, options());
  fill(store);
  RawSqlite raw{path};
  raw.run("PRAGMA recursive_triggers = ON");

  for (const char* const sql :
       {"UPDATE event_tags SET tags = 'student-s2'", "DELETE FROM event_tags",
        "UPDATE tag_index SET sequence = 9", "DELETE FROM tag_index",
        "REPLACE INTO event_tags SELECT sequence, part, 'a-b', checksum FROM event_tags"}) {
    EXPECT_THROW(raw.run(sql), std::runtime_error) << sql;
  }
  EXPECT_THAT(problems_of(store), IsEmpty());
}

TEST_F(StoredTags, ThatAreDamagedAreFound) {
  EXPECT_THAT(problems_after("UPDATE event_tags SET tags = 'student-s9' WHERE sequence = 1"),
              Contains(HasSubstr("tags of event 1: they don't match their checksum")));
}

TEST_F(StoredTags, ThatTheIndexMissesAreFound) {
  EXPECT_THAT(problems_after("DELETE FROM tag_index WHERE sequence = 2"),
              Contains(HasSubstr("tags of event 2: the index doesn't lead to 'student-s1'")));
}

TEST_F(StoredTags, WithAnotherKindInTheIndexAreFound) {
  EXPECT_THAT(problems_after("UPDATE tag_index SET kind = 7 WHERE sequence = 1"),
              Contains(HasSubstr("the index has another kind")));
}

TEST_F(StoredTags, ThatOnlyTheIndexKnowsAreFound) {
  EXPECT_THAT(problems_after("INSERT INTO tag_index VALUES (12345, 1, 1)"),
              Contains(HasSubstr("tags of event 1: the index leads to one that the event doesn't "
                                 "have")));
}

TEST_F(StoredTags, ThatAreLostAreFoundByWhatTheIndexKnows) {
  EXPECT_THAT(problems_after("DELETE FROM event_tags WHERE sequence = 2"),
              Contains(HasSubstr("tags of event 2: the index leads to one that")).Times(2));
}

TEST_F(StoredTags, ThatAreLostTogetherWithTheirEntriesAreFoundByWhatTheTypeDeclares) {
  EXPECT_THAT(problems_after("DELETE FROM event_tags WHERE sequence = 2; "
                             "DELETE FROM tag_index WHERE sequence = 2"),
              Contains(HasSubstr("tags of event 2: every event of its type has one of category "
                                 "'student', and it has none")));
}

TEST_F(StoredTags, OfWhichAPartIsLostAreFound) {
  EXPECT_THAT(problems_after("UPDATE event_tags SET part = 1 WHERE sequence = 2"),
              Contains(HasSubstr("tags of event 2: part 0 is missing")));
}

TEST_F(StoredTags, OfAMissingEventAreFound) {
  EXPECT_THAT(problems_after("INSERT INTO event_tags VALUES (0, 0, 'a-b', 1)"),
              Contains(HasSubstr("tags of event 0: the event is missing")));
}

TEST_F(StoredTags, ThatTypesDeclareAreChecked) {
  EXPECT_THAT(problems_after("UPDATE tag_types SET since = 9"),
              Contains(HasSubstr("doesn't match its checksum")));
}

TEST_F(StoredTags, ThatAreDamagedAreNotRead) {
  const std::string path = dir.file("shop.db");
  {
    Store store = sqlite::open(path, options());
    fill(store);
  }
  RawSqlite raw{path};
  raw.drop_triggers();
  raw.run("UPDATE event_tags SET tags = 'student-s9' WHERE sequence = 2");
  Store store = sqlite::open(path, options());

  EXPECT_THROW(of_student(store), CorruptEvent);
}

TEST_F(StoredTags, WithTheSameHashAreToldApart) {
  const std::string path = dir.file("shop.db");
  {
    Store store = sqlite::open(path, options());
    fill(store);
    subscribe(store, "course-c3", {"student-s2"});
  }
  // As if the hash of the other tag were the same.
  RawSqlite raw{path};
  raw.drop_triggers();
  raw.run(
      "UPDATE tag_index SET tag = (SELECT tag FROM tag_index WHERE sequence = 1) WHERE sequence = "
      "3");
  Store store = sqlite::open(path, options());

  EXPECT_THAT(of_student(store),
              ElementsAre("1 course-c1@1 subscribed {}", "2 course-c2@1 subscribed {}"));
  const AppendCondition condition{{{item({"subscribed"}, {"student-s1"})}}, GlobalSequence{2}};
  EXPECT_NO_THROW(store.append({.condition = &condition}));
}

TEST_F(StoredTags, AreExportedAndImported) {
  Store store = in_memory();
  fill(store);
  const std::string text = export_of(store);
  Store copy = in_memory();
  import_text(copy, text);

  EXPECT_THAT(text, HasSubstr(R"({"format":"stela-events","version":2,"codec":"json","tag_types":)"
                              R"([{"type":"subscribed","category":"student","always":true,)"
                              R"("several":false,"since":0}]})"));
  EXPECT_THAT(text, HasSubstr(R"("tags":["student-s1","term-7"],"payload")"));
  EXPECT_EQ(export_of(copy), text);
  EXPECT_THAT(of_student(copy),
              ElementsAre("1 course-c1@1 subscribed {}", "2 course-c2@1 subscribed {}"));
  EXPECT_THAT(problems_of(copy), IsEmpty());
  EXPECT_EQ(import_text(copy, text).skipped, 2);
}

TEST_F(StoredTags, AStoreWithoutThemIsExportedAsBefore) {
  Store store = in_memory();
  test::append(store, "order-1", 1);

  EXPECT_THAT(export_of(store),
              HasSubstr("{\"format\":\"stela-events\",\"version\":1,\"codec\":\"json\"}\n"));
}

TEST_F(StoredTags, OfAnImportMustBeThoseOfTheStore) {
  Store store = in_memory();
  fill(store);
  std::string text = export_of(store);
  text.replace(text.find("student-s1\",\"term-7"), 10, "student-s2");

  EXPECT_THROW(import_text(store, text), UsageError);
  Store other = in_memory();
  std::string without = export_of(store);
  const std::string tags = R"("tags":["student-s1"],)";
  without.erase(without.find(tags), tags.size());
  EXPECT_THROW(import_text(other, without), UsageError);
}

TEST_F(StoredTags, OfAnotherProcessAreSeenAtOnce) {
  const std::string path = dir.file("shop.db");
  Store one = sqlite::open(path, options());
  Store other = sqlite::open(path, options());
  subscribe(one, "course-c1", {"student-s1"});
  subscribe(other, "course-c2", {"student-s1"});

  const AppendCondition condition{{{item({"subscribed"}, {"student-s1"})}}, GlobalSequence{1}};
  EXPECT_THROW(one.append({.condition = &condition}), ConditionConflict);
  EXPECT_THAT(of_student(one),
              ElementsAre("1 course-c1@1 subscribed {}", "2 course-c2@1 subscribed {}"));
}

TEST_F(StoredTags, AreListedInPages) {
  Store store = sqlite::open(dir.file("many.db"), options());
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) {
    const std::string tag = "student-" + std::to_string(i);
    subscribe(store, "course-c1", {tag, "term-7"});
    all.insert(tag);
  }
  std::set<std::string> seen;
  TagListing which{.category = "student", .limit = 7};
  for (auto page = list_tags(store, which); !page.empty(); page = list_tags(store, which)) {
    for (const TagEntry& entry : page) EXPECT_TRUE(seen.insert(entry.tag.name()).second);
    which.after = page.back().tag.name();
  }
  EXPECT_EQ(seen, all);
  const auto steps = [&](std::int64_t limit) {
    return test::steps_of(store, [&] { list_tags(store, {.limit = limit}); });
  };
  steps(1);
  EXPECT_LT(steps(5) * 5, steps(100)) << "it looks at what it lists";
}

TEST_F(StoredTags, CostAnEventWithoutThemNoRow) {
  const std::string path = dir.file("shop.db");
  Store store = sqlite::open(path, options());
  test::append(store, "order-1", 3);
  RawSqlite raw{path};

  EXPECT_EQ(raw.integer("SELECT count(*) FROM event_tags"), 0);
  EXPECT_EQ(raw.integer("SELECT count(*) FROM tag_index"), 0);
  subscribe(store, "student-s1", {"student-s1"});
  EXPECT_EQ(raw.integer("SELECT count(*) FROM event_tags"), 0);
}

}  // namespace
}  // namespace stela::tags_test
