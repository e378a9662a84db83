// Operations on a store on PostgreSQL: what is looked up, verified and purged.
#include "database/inspection.hpp"
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/random_history.hpp"
#include "support/soundness.hpp"

#include <stela/eventstore/tags.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stela::postgres::operations_test {
namespace {

using std::chrono::days;
using test::append;
using test::problems_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// A check that the server has no room for.
class LargeCheck final : public IntegrityCheck {
 public:
  std::string_view name() const noexcept override { return "large"; }
  void run(database::Inspection& inspection) override {
    inspection.read([&](database::Connection& connection) {
      connection_of(connection)
          .execute("DO $$ BEGIN RAISE EXCEPTION 'too large' USING ERRCODE = '53400'; END $$");
    });
  }
};

class PostgresOperations : public ::testing::Test {
 protected:
  void run(const std::string& sql) { Connection{{.conninfo = server.url()}}.execute(sql); }
  std::int64_t ask(const std::string& sql) {
    return Connection{{.conninfo = server.url()}}.query(sql).integer(0, 0);
  }
  /// As nobody may who isn't the tables' owner: without triggers and constraints of foreign keys.
  void change_behind(const std::string& sql) {
    run("SET session_replication_role = replica; " + sql);
  }
  std::vector<std::string> problems() { return problems_of(store); }

  test::PostgresServer server;
  stela::testing::ManualClock clock;
  Store store = postgres::open(server.url(), {.clock = &clock});
  StoreOperations operations{store};
};

TEST_F(PostgresOperations, ListStreamsAndSnapshotsByName) {
  append(store, "order-b", 2);
  append(store, "order-a");
  append(store, "stock-a", 3);
  store.save_snapshot(StreamId::parse("order-b"), {StreamVersion{2}, GlobalSequence{2}, 7, "four"});

  const auto orders = operations.list_streams({.category = "order"});
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(orders[0].stream.name(), "order-a");
  EXPECT_EQ(orders[0].last, GlobalSequence{3});
  EXPECT_EQ(orders[1].version, StreamVersion{2});
  EXPECT_EQ(orders[1].changed_at, clock.now());
  EXPECT_EQ(operations.list_streams({.after = "order-a", .limit = 1})[0].stream.name(), "order-b");

  const auto snapshots = operations.list_snapshots();
  ASSERT_THAT(snapshots, SizeIs(1));
  EXPECT_EQ(snapshots[0].stream.name(), "order-b");
  EXPECT_EQ(snapshots[0].state_version, 7);
  EXPECT_EQ(snapshots[0].bytes, 4);
}

TEST_F(PostgresOperations, TakeALimitOfTheServersForNoDamage) {
  LargeCheck check;
  IntegrityCheck* const checks[] = {&check};
  EXPECT_THROW(problems_of(store, {.checks = checks}), StoreFull);
}

TEST_F(PostgresOperations, CountEventsOfEachKind) {
  append(store, "order-a", {{"placed", 1, true, "{}"}, {"noted", 2, false, "[1]"}});
  append(store, "order-b", {{"placed", 1, true, "{}"}});

  const auto kinds = operations.count_events();

  ASSERT_THAT(kinds, SizeIs(2));
  EXPECT_EQ(kinds[0].type, "placed");
  EXPECT_TRUE(kinds[0].publishes);
  EXPECT_EQ(kinds[0].events, 2);
  EXPECT_EQ(kinds[0].payload_bytes, 4);
  EXPECT_EQ(kinds[0].last, GlobalSequence{3});
  EXPECT_EQ(kinds[1].version, 2);
  EXPECT_THAT(operations.count_events({.from = GlobalSequence{3}}), SizeIs(1));
  EXPECT_THAT(operations.count_events({.from = GlobalSequence{99}, .lists_all = true}),
              SizeIs(kinds.size()));
}

TEST_F(PostgresOperations, FindEventsByTheirIdAndTheirCause) {
  const AppendResult cause = append(store, "order-a");
  const EventId id = (*store.read_all().begin()).id;
  {
    const ContextScope scope{Context{.causation_id = id}};
    append(store, "stock-a", 2);
  }

  EXPECT_EQ(operations.find_event(id), cause.last);
  EXPECT_EQ(operations.find_event(make_uuid()), std::nullopt);
  EXPECT_THAT(operations.effects_of(id, GlobalSequence{0}, 10),
              ElementsAre(GlobalSequence{2}, GlobalSequence{3}));
  EXPECT_THAT(operations.effects_of(id, GlobalSequence{2}, 10), ElementsAre(GlobalSequence{3}));
}

TEST_F(PostgresOperations, FindTimesByHalving) {
  const Timestamp begin = clock.now();
  for (int i = 0; i < 5; ++i) {
    append(store, "order-a", 2);
    clock.advance(days{1});
  }

  EXPECT_EQ(operations.find_time(begin), GlobalSequence{1});
  EXPECT_EQ(operations.find_time(begin + days{2}), GlobalSequence{5});
  EXPECT_EQ(operations.find_time(begin + days{2} + std::chrono::microseconds{1}),
            GlobalSequence{7});
  EXPECT_EQ(operations.find_time(clock.now()), GlobalSequence{11});
}

TEST_F(PostgresOperations, ListTagsInPages) {
  std::set<std::string> all;
  for (int i = 0; i < 13; ++i) {
    std::vector<Tag> tags;
    for (int k = 0; k < 100; ++k) tags.push_back(Tag::of("part", std::to_string(100 * i + k)));
    for (const Tag& tag : tags) all.insert(tag.name());
    append(store, "order-a", {{.type = "placed", .payload = "{}", .tags = tags}});
  }

  std::set<std::string> seen;
  TagListing which{.limit = 100};
  for (auto page = list_tags(store, which); !page.empty(); page = list_tags(store, which)) {
    for (const TagEntry& entry : page) EXPECT_TRUE(seen.insert(entry.tag.name()).second);
    which.after = page.back().tag.name();
  }
  EXPECT_EQ(seen, all);
  EXPECT_EQ(list_tags(store).size(), all.size());
}

TEST_F(PostgresOperations, PurgeAppendIdsByAge) {
  append(store, "order-a", {{"noted", 1, false, "{}"}}, "old");
  clock.advance(days{10});
  append(store, "order-a", {{"noted", 1, false, "{}"}}, "young");

  EXPECT_EQ(operations.purge_append_ids(clock.now() - days{5}, {.dry_run = true}).ids, 1);
  EXPECT_EQ(operations.purge_append_ids(clock.now() - days{5}).ids, 1);

  EXPECT_TRUE(append(store, "order-a", {{"noted", 1, false, "{}"}}, "young").repeated);
  EXPECT_FALSE(append(store, "order-a", {{"noted", 1, false, "{}"}}, "old").repeated);
}

TEST_F(PostgresOperations, LeaveTheGroupsOfOldCommitsToTheAppendsAfterThem) {
  append(store, "order-a", 3);
  append(store, "order-a", 3);
  run("UPDATE stela.append_groups SET written_at = written_at - interval '3 days'");
  run("INSERT INTO stela.append_groups (group_id, is_void, written_at) "
      "VALUES (gen_random_uuid(), true, now() - interval '1 day')");
  for (int i = 0; i < 1000; ++i) append(store, "order-a");

  EXPECT_EQ(ask("SELECT count(*) FROM stela.append_groups "
                "WHERE written_at < now() - interval '2 days'"),
            0);
  EXPECT_EQ(ask("SELECT count(*) FROM stela.append_groups WHERE is_void"), 1);
}

TEST_F(PostgresOperations, ReadEventsAFewTimesHoweverManyHaveTags) {
  constexpr int events = 4'000;
  const std::vector<Tag> tags{Tag::of("course", "c1")};
  const std::vector<NewEvent> some(500, {"noted", 1, false, "{}", tags});
  for (int i = 0; i < events / 500; ++i) append(store, "order-a", some);
  // The server is to join wherever it can.
  run("ANALYZE; ALTER DATABASE postgres SET enable_nestloop = off");
  const auto reads = [&] {
    return ask(
        "SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint "
        "FROM pg_stat_user_tables WHERE relid = 'stela.events'::regclass");
  };
  {
    Store other = postgres::open(server.url());
    const std::int64_t before = reads();
    EXPECT_EQ(StoreOperations{other}.verify([](const Problem&) {}).events, events);
    // Sessions tell what they did at their end.
    other = postgres::open(server.url());
    EXPECT_TRUE(test::eventually([&] { return reads() > before; }));
    EXPECT_LT(reads() - before, 6 * events);
  }
}

TEST_F(PostgresOperations, FindASoundStoreSound) {
  test::RandomHistory{5, clock}.append_to(store, 150);

  EXPECT_THAT(problems(), IsEmpty());
  const auto result = operations.verify([](const Problem&) {});
  EXPECT_EQ(result.events, store.last_sequence().value());
  for (const auto& [what, why] : result.unchecked) ADD_FAILURE() << what << ": " << why;
}

TEST_F(PostgresOperations, CheckIndexesThoroughlyWithAmcheck) {
  append(store, "order-a");
  EXPECT_THAT(operations.verify([](const Problem&) {}, {.thorough = true}).unchecked, SizeIs(1));
  run("CREATE EXTENSION amcheck");
  EXPECT_THAT(operations.verify([](const Problem&) {}, {.thorough = true}).unchecked, IsEmpty());
  EXPECT_THAT(problems_of(store, {.thorough = true}), IsEmpty());
}

TEST_F(PostgresOperations, NameEventsThatWereChangedOrRemoved) {
  append(store, "order-a", 3);
  append(store, "order-b", 3);
  change_behind("UPDATE stela.events SET payload = 'x' WHERE sequence = 2");
  change_behind("DELETE FROM stela.events WHERE sequence IN (4, 5)");

  EXPECT_THAT(
      problems(),
      ElementsAre("events: event 2: it doesn't match its checksum",
                  "events: events 4 to 5: they're missing",
                  "events: stream number 2, version 3: the versions before it are missing"));
}

TEST_F(PostgresOperations, NameEventsOnAPageThatTheServerCannotRead) {
  const std::string payload = '"' + std::string(400, 'x') + '"';
  append(store, "order-a", std::vector<NewEvent>(200, {"noted", 1, false, payload}));
  run("CHECKPOINT");
  const std::string table =
      server.folder() + "/data/" + server.ask("SELECT pg_relation_filepath('stela.events')");
  server.crash();
  {
    std::fstream file{table, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(3 * 8192);
    file << std::string(64, '\xff');
  }
  server.start_again();
  store = postgres::open(server.url());

  EXPECT_THAT(problems(), Contains(AllOf(HasSubstr("events: events "),
                                         HasSubstr(": the server can't read it: "),
                                         HasSubstr("invalid page in block 3"))));
  std::vector<std::string> lost;
  std::ostringstream out;
  const auto result = salvage_events(
      store, out, [&](const UnreadableEvents& events) { lost.push_back(events.why); });
  EXPECT_THAT(lost, ElementsAre(HasSubstr("invalid page in block 3")));
  EXPECT_THAT(result.events, AllOf(Gt(150), Lt(200)));
}

TEST_F(PostgresOperations, NameEventsWithNumbersBelowOne) {
  append(store, "order-a");
  append(store, "order-b");
  change_behind("UPDATE stela.events SET sequence = 0 WHERE sequence = 1");
  change_behind("UPDATE stela.events SET version = 0 WHERE sequence = 2");

  EXPECT_THAT(
      problems(),
      ElementsAre("events: event 2: its version or id is invalid", "events: event 1: it's missing",
                  "events: stream number 2, version 0: the versions before it are missing",
                  HasSubstr("its streams have 2 versions, and it has 1 events")));
}

TEST_F(PostgresOperations, NameEventsThatShareAnId) {
  for (int i = 0; i < 2; ++i) {
    test::SeededRandom same{1};
    Store one = postgres::open(server.url(), {.clock = &clock, .random = &same});
    append(one, "order-a");
  }
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("events: event 2: it has the id of event 1, ")));
}

TEST_F(PostgresOperations, NameDamageOfWhatDependsOnEvents) {
  append(store, "order-a", {{"noted", 1, true, "{}"}}, "a");
  append(store, "order-a", {{"noted", 1, true, "{}"}}, "b");
  store.save_snapshot(StreamId::parse("order-a"), {StreamVersion{1}, GlobalSequence{1}, 1, "{}"});
  change_behind("UPDATE stela.append_ids SET last_sequence = 9 WHERE append_id = 'a'");
  change_behind("UPDATE stela.snapshots SET payload = 'x'");
  change_behind("UPDATE stela.event_kinds SET kind = 3");
  change_behind("UPDATE stela.append_groups SET last_sequence = 9 WHERE first_sequence = 2");

  EXPECT_THAT(problems(),
              AllOf(Contains(HasSubstr("event_kinds: event kind 3: event kind 1")),
                    Contains(HasSubstr("it is of a kind that doesn't exist")),
                    Contains("append_ids: append id 'a': it doesn't match its checksum"),
                    Contains(HasSubstr("append_groups: append group ")),
                    Contains(HasSubstr("snapshots: the snapshot of 'order-a': "))));

  change_behind("UPDATE stela.streams SET name = 'no name'");
  EXPECT_THAT(problems(), Contains(HasSubstr("streams: stream number 1: 'no name' can't be")));
}

TEST_F(PostgresOperations, NameTagsThatWereChangedAndIndexesThatMissThem) {
  const std::vector<Tag> tags{Tag::parse("student-s1"), Tag::parse("course-c1")};
  append(store, "order-a",
         std::vector<NewEvent>(4, {.type = "noted", .payload = "{}", .tags = tags}));
  EXPECT_THAT(problems(), IsEmpty());

  change_behind("UPDATE stela.event_tags SET tags = 'student-s2' WHERE sequence = 2");
  change_behind(
      "DELETE FROM stela.tag_index WHERE sequence = 3 AND kind = 1 AND tag = "
      "(SELECT min(tag) FROM stela.tag_index)");
  change_behind(
      "UPDATE stela.tag_index SET kind = 7 WHERE sequence = 4 AND tag = "
      "(SELECT max(tag) FROM stela.tag_index)");
  EXPECT_THAT(problems(),
              UnorderedElementsAre(
                  "tags: the tags of event 2: they don't match their checksum",
                  HasSubstr("tags: the tags of event 3: the index doesn't lead to '"),
                  HasSubstr("tags: the tags of event 4: the index has another kind for '")));
}

TEST_F(PostgresOperations, NameEntriesOfTheIndexOfTagsThatNoEventHas) {
  append(store, "order-a");
  change_behind("INSERT INTO stela.tag_index VALUES (7, 1, 1)");
  change_behind("DELETE FROM stela.tag_epoch");
  EXPECT_THAT(problems(),
              UnorderedElementsAre(HasSubstr("tags: the tags of event 1: the index leads to one"),
                                   "tags: table tag_epoch: its row is missing"));
}

TEST_F(PostgresOperations, NameTagsThatAreLost) {
  constexpr std::array<TagDeclaration, 1> student{{{"student", true}}};
  const std::vector<Tag> tags{Tag::parse("student-s1"), Tag::parse("course-c1")};
  append(store, "order-a",
         std::vector<NewEvent>(4, {.type = "noted",
                                   .payload = "{}",
                                   .tags = tags,
                                   .declared = std::span<const TagDeclaration>{student}}));
  append(
      store, "student-s1",
      {NewEvent{
          .type = "noted", .payload = "{}", .declared = std::span<const TagDeclaration>{student}}});
  EXPECT_THAT(problems(), IsEmpty());

  change_behind("DELETE FROM stela.event_tags WHERE sequence = 2");
  change_behind("DELETE FROM stela.event_tags WHERE sequence = 3");
  change_behind("DELETE FROM stela.tag_index WHERE sequence = 3");
  change_behind("UPDATE stela.event_tags SET part = 1 WHERE sequence = 4");
  EXPECT_THAT(
      problems(),
      UnorderedElementsAre(
          HasSubstr("tags of event 2: the index leads to one that the event doesn't have"),
          HasSubstr("tags of event 2: the index leads to one that the event doesn't have"),
          HasSubstr("tags of event 2: every event of its type has one of category 'student'"),
          HasSubstr("tags of event 3: every event of its type has one of category 'student'"),
          HasSubstr("tags of event 4: part 0 is missing"),
          HasSubstr("tags of event 4: they don't match their checksum")));
}

TEST_F(PostgresOperations, NameWhatOfTheSchemaWasChangedByHand) {
  run("DROP TRIGGER events_are_append_only ON stela.events");
  run("ALTER TABLE stela.append_ids ALTER COLUMN used_at DROP NOT NULL");
  run("CREATE OR REPLACE FUNCTION stela.rotated(number bigint, bits integer) RETURNS bigint "
      "LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN number");
  run("DELETE FROM stela.stela_facts WHERE name = 'codec'");

  EXPECT_THAT(problems(), ElementsAre("schema: function rotated: it isn't as Stela made it",
                                      "schema: table append_ids: it isn't as Stela made it",
                                      "schema: trigger events_are_append_only on events: it's gone",
                                      "schema: fact 'codec': it's gone"));
}

TEST_F(PostgresOperations, NameGuardsThatAreGoneOrSwitchedOff) {
  run("DROP TRIGGER belongs_to_stela ON stela.events");
  run("ALTER TABLE stela.append_groups DISABLE TRIGGER belongs_to_stela");

  EXPECT_THAT(
      problems(),
      ElementsAre("schema: trigger belongs_to_stela on append_groups: it isn't as Stela made it",
                  "schema: trigger belongs_to_stela on events: it's gone"));
}

TEST_F(PostgresOperations, NameWhatSomebodyElseHasPutOnTheTables) {
  run("CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
      "CREATE TRIGGER swallows BEFORE INSERT ON stela.events FOR EACH ROW "
      "EXECUTE FUNCTION swallow()");
  run("CREATE RULE ignores AS ON INSERT TO stela.snapshots DO INSTEAD NOTHING");
  run("ALTER TABLE stela.append_ids ENABLE ROW LEVEL SECURITY");
  run("CREATE TABLE child () INHERITS (stela.streams)");
  run("ALTER TABLE stela.events ADD CONSTRAINT mine CHECK (version < 2) NOT VALID");

  EXPECT_THAT(
      problems(),
      AllOf(SizeIs(5), Contains(HasSubstr("constraint mine: it isn't Stela's")),
            Contains(HasSubstr("rule ignores on snapshots: it isn't Stela's")),
            Contains(HasSubstr("row level security of append_ids: it isn't Stela's")),
            Contains(HasSubstr("table public.child, which inherits streams: it isn't Stela's")),
            Contains(HasSubstr("trigger swallows on events: it isn't Stela's"))));
}

TEST_F(PostgresOperations, VerifyAStoreInASchemaOfAnotherName) {
  Store other = postgres::open(server.url(), {.schema = "the \"shop\""});
  append(other, "order-a", 3);
  EXPECT_THAT(problems_of(other), IsEmpty());
}

TEST_F(PostgresOperations, SayWhatARoleWithoutRightsCannotCheck) {
  run("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA stela TO reader; "
      "GRANT SELECT ON ALL TABLES IN SCHEMA stela TO reader");
  append(store, "order-a");
  Store read = postgres::open(server.url("postgres", "reader"));

  const auto result = StoreOperations{read}.verify([](const Problem&) {});

  EXPECT_TRUE(result.is_sound());
  ASSERT_THAT(result.unchecked, SizeIs(1));
  EXPECT_EQ(result.unchecked[0].table, "the objects of 'eventstore'");
  EXPECT_THAT(result.unchecked[0].why, HasSubstr("permission denied"));
}

TEST_F(PostgresOperations, ExportWhatADamagedStoreStillHas) {
  append(store, "order-a", 6);
  change_behind("UPDATE stela.events SET payload = 'x' WHERE sequence = 2");
  change_behind("DELETE FROM stela.events WHERE sequence = 4");

  std::vector<std::string> lost;
  std::ostringstream out;
  const auto result = salvage_events(store, out, [&](const UnreadableEvents& events) {
    lost.push_back(std::to_string(events.first.value()) + ": " + events.why);
  });

  EXPECT_EQ(result.events, 4);
  EXPECT_THAT(lost, ElementsAre("2: it doesn't match its checksum", "4: it's missing"));
}

}  // namespace
}  // namespace stela::postgres::operations_test
