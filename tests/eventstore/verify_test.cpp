#include "sqlite/inspection.hpp"
#include "support/bystander.hpp"
#include "support/counters.hpp"
#include "support/histories.hpp"
#include "support/peak_memory.hpp"
#include "support/process.hpp"
#include "support/random_history.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_handle.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace stela::verify_test {
namespace {

using test::append;
using test::Bystander;
using test::problems_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class Verify : public ::testing::Test {
 protected:
  /// A history with a participant, append ids and snapshots.
  void fill(int appends) {
    store->attach(bystander);
    test::RandomHistory{1, clock}.append_to(*store, appends);
    append(*store, "order-0", {{"noted", 1, true, "{}"}}, "the-command");
    append(*store, "order-0", 2);
    store->save_snapshot(StreamId::parse("order-0"),
                         {StreamVersion{head_of("order-0")}, store->last_sequence(), 1, "{}"});
  }
  std::int64_t head_of(std::string_view stream) {
    std::int64_t version = 0;
    for (const StoredEvent& event : store->read_stream(StreamId::parse(stream))) {
      version = event.version.value();
    }
    return version;
  }
  /// The problems of the store behind `sql`, which nothing refused.
  std::vector<std::string> problems_behind(const std::string& sql) {
    store.reset();
    {
      test::RawSqlite raw{path};
      const auto triggers =
          raw.rows("SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name");
      raw.drop_triggers();
      raw.run("PRAGMA ignore_check_constraints = ON; " + sql);
      for (const std::string& trigger : triggers) raw.run(trigger);
    }
    store = test::open_store(path, options);
    return problems_of(*store);
  }

  /// What is to be done about the problems that there are.
  std::vector<std::string> advice() {
    std::vector<std::string> all;
    StoreOperations{*store}.verify([&](const Problem& problem) { all.push_back(problem.advice); });
    return all;
  }

  /// Each damage of a whole database alone, and a part of what is said of it.
  void expect_found(const std::vector<std::pair<std::string, std::string>>& damages) {
    store.reset();
    std::filesystem::copy_file(path, dir.file("whole.db"));
    for (const auto& [sql, expected] : damages) {
      EXPECT_THAT(problems_behind(sql), Contains(HasSubstr(expected))) << sql;
      store.reset();
      std::filesystem::copy_file(dir.file("whole.db"), path,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  testing::ManualClock clock;
  const sqlite::Options options{.durability = sqlite::Durability::relaxed, .clock = &clock};
  Bystander bystander;
  std::unique_ptr<Store> store = test::open_store(path, options);
};

TEST_F(Verify, FindsNothingInANewStore) {
  EXPECT_THAT(problems_of(*store), IsEmpty());
}

TEST_F(Verify, FindsNothingInAHistoryOfEveryShape) {
  fill(600);
  EXPECT_THAT(problems_of(*store), IsEmpty());
  EXPECT_THAT(problems_of(*store, {.thorough = true}), IsEmpty());
}

TEST_F(Verify, FindsNothingInADatabaseInMemory) {
  auto memory = sqlite::open_in_memory({.clock = &clock});
  test::RandomHistory{2, clock}.append_to(memory, 100);
  EXPECT_THAT(problems_of(memory), IsEmpty());
}

TEST_F(Verify, FindsNothingInAFileThatIsShared) {
  store.reset();
  const std::string shared = dir.file("shared.db");
  {
    test::RawSqlite{dir.file("shop.db")};
    std::ofstream{shared};
    test::RawSqlite raw{shared};
    raw.run("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1)");
  }
  auto beside = sqlite::open(shared, {.share_file = true});
  append(beside, "order-1");
  EXPECT_THAT(problems_of(beside), IsEmpty());
}

TEST_F(Verify, FindsNothingInAFileOfUtf16) {
  const std::string shared = dir.file("shared.db");
  std::ofstream{shared};
  // As earlier versions made one.
  test::RawSqlite{shared}.run(
      "PRAGMA encoding = 'UTF-16le'; CREATE TABLE orders (id INTEGER PRIMARY KEY);"
      "PRAGMA application_id = 0x5354454c");
  auto beside = sqlite::open(shared);
  for (const char* const id : {"order-\u0100", "order-a", "order-\U0001F4E6"}) {
    append(beside, "order-1", {{"noted", 1, false, "{}"}}, id);
  }

  EXPECT_THAT(problems_of(beside), IsEmpty());
}

/// True if another process could have the database to itself: it would move the log into the file
/// and delete it, while this one goes on committing to what it deleted.
bool could_be_taken_away(const std::string& path) {
  // Without SQLite, so that it may be forked from a process with open databases.
  test::Process other{[&] {
    struct flock shared_bytes_of_sqlite {};
    shared_bytes_of_sqlite.l_type = F_WRLCK;
    shared_bytes_of_sqlite.l_start = 0x40000002;
    shared_bytes_of_sqlite.l_len = 510;
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    fcntl(file, F_GETLK, &shared_bytes_of_sqlite);
    _exit(shared_bytes_of_sqlite.l_type == F_UNLCK ? 17 : 0);
  }};
  return other.wait() == 17;
}

TEST_F(Verify, LeavesTheDatabaseLockedAsLongAsItIsOpen) {
  fill(1);
  EXPECT_FALSE(could_be_taken_away(path));
  EXPECT_THAT(problems_of(*store), IsEmpty());
  EXPECT_FALSE(could_be_taken_away(path));

  store.reset();
  EXPECT_TRUE(could_be_taken_away(path));
}

TEST_F(Verify, FindsThatTheFileHasNoLogAnyMore) {
  store.reset();
  test::RawSqlite{path}.run("PRAGMA journal_mode = DELETE");
  store = test::open_store(path, {.read_only = true});
  EXPECT_THAT(problems_of(*store), ElementsAre(HasSubstr("has no write-ahead log any more")));
}

TEST_F(Verify, CountsTheEventsAndSaysHowFarItIs) {
  append(*store, "order-1", 1300);
  std::vector<std::string> stages;
  std::int64_t last = 0;
  std::int64_t total = 0;
  const auto result = StoreOperations{*store}.verify(
      [](const Problem&) {}, {.progress = [&](const Progress& progress) {
        if (stages.empty() || stages.back() != progress.stage) {
          stages.emplace_back(progress.stage);
          last = 0;
        }
        EXPECT_GE(progress.done, last);
        EXPECT_LE(progress.done, progress.total);
        last = progress.done;
        if (progress.stage == "events") total = progress.total;
      }});

  EXPECT_EQ(result.events, 1300);
  EXPECT_EQ(total, 1300);
  EXPECT_THAT(stages, ElementsAre("file", "streams", "event_kinds", "events", "tags", "append_ids",
                                  "snapshots"));
}

TEST_F(Verify, FindsChangesInEvents) {
  fill(30);
  expect_found(
      {{"UPDATE events SET payload = x'00' WHERE sequence = 7",
        "events: event 7: it doesn't match its checksum"},
       {"UPDATE events SET recorded_at = 0 WHERE sequence = 7", "events: event 7: "},
       {"UPDATE events SET kind = 99 WHERE sequence = 7", "events: event 7: "},
       {"UPDATE events SET version = 99 WHERE sequence = 7", "version 99"},
       {"UPDATE events SET stream = 99 WHERE sequence = 7", "events: event 7: "},
       {"DELETE FROM events WHERE sequence BETWEEN 7 AND 9", "events: events 7 to 9: they're "},
       {"DELETE FROM events WHERE sequence = 1", "events: event 1: it's missing"},
       {"UPDATE events SET sequence = 0 WHERE sequence = 1", "an event before the first one"},
       {"UPDATE events SET sequence = 9223372036854775807 WHERE sequence = 7",
        "events: event 9223372036854775807: no event can have this sequence"}});
}

TEST_F(Verify, FindsAnIdThatTwoEventsHave) {
  struct Repeating final : Random {
    void fill(std::span<std::uint8_t> bytes) override {
      std::fill(bytes.begin(), bytes.end(), std::uint8_t{7});
    }
  } random;
  store.reset();
  sqlite::Options repeating = options;
  repeating.random = &random;
  // Two processes that draw the same random numbers at the same time.
  for (int i = 0; i < 2; ++i) append(*test::open_store(path, repeating), "order-1");
  store = test::open_store(path, options);

  EXPECT_THAT(problems_of(*store),
              ElementsAre(HasSubstr("events: event 2: it has the id of event 1, 0")));
}

TEST_F(Verify, FindsAKindThatItsBlockDoesNotName) {
  append(*store, "order-1", 2);

  EXPECT_THAT(problems_behind("DELETE FROM kind_blocks"),
              ElementsAre(HasSubstr("events: event 1: the table kind_blocks doesn't say")));
}

TEST_F(Verify, FindsChangesOutsideEvents) {
  fill(30);
  expect_found(
      {{"UPDATE streams SET name = 'order-000' WHERE stream = 2", "doesn't match its checksum"},
       {"UPDATE streams SET name = 'or der' WHERE stream = 2",
        "streams: stream number 2: 'or der' can't be a stream name"},
       {"DELETE FROM streams WHERE stream = 2", "its stream, number 2, has no name"},
       {"UPDATE event_kinds SET category = 'other' WHERE kind = 2", "its kind is of category"},
       {"UPDATE event_kinds SET type = 'other' WHERE kind = 2", "doesn't match its checksum"},
       {"UPDATE event_kinds SET version = 5000000000 WHERE kind = 2",
        "event_kinds: event kind 2: its category, type, version or flag can't be"},
       {"DELETE FROM event_kinds WHERE kind = 2",
        "event_kinds: event kind 3: event kind 2 is missing before it"},
       {"UPDATE append_ids SET last_sequence = 3 WHERE append_id = 'the-command'",
        "append_ids: append id 'the-command': it doesn't match its checksum"},
       {"UPDATE snapshots SET payload = x'00'", "'order-0': it doesn't match its checksum"},
       {"UPDATE snapshots SET stream = 999 WHERE stream = "
        "(SELECT stream FROM streams WHERE name = 'order-0')",
        "snapshots: the snapshot of stream number 999: there is no such stream"},
       {"UPDATE stela_participants SET detail = '2'",
        "schema: participant 'bystander': it doesn't match its checksum"},
       {"DELETE FROM stela_facts WHERE name = 'codec'", "schema: fact 'codec': it's gone"},
       {"UPDATE stela_migrations SET name = 'other'", "migration 1 of 'eventstore' isn't one"},
       {"CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a REFERENCES a);"
        "INSERT INTO b VALUES (5)",
        "file: table b, row 1: it refers to a missing row of a"}});
}

TEST_F(Verify, FindsAMissingTrigger) {
  test::RawSqlite{path}.run("DROP TRIGGER events_are_never_deleted");
  EXPECT_THAT(problems_of(*store),
              ElementsAre("schema: trigger events_are_never_deleted: it's gone"));
}

TEST_F(Verify, FindsATableThatIsAnother) {
  test::RawSqlite{path}.run("ALTER TABLE snapshots ADD COLUMN note TEXT");
  EXPECT_THAT(problems_of(*store),
              ElementsAre("schema: table snapshots: it isn't as Stela made it"));
}

TEST_F(Verify, FindsAPublishedVersionThatTheWriterGotWrong) {
  append(*store, "order-1", {{"shipped", 1, true, "{}"}, {"shipped", 1, true, "{}"}});
  const auto problems = problems_behind(
      "UPDATE events SET published_before = 0, checksum = checksum WHERE sequence = 2");
  EXPECT_THAT(problems, Contains("events: event 2: it names version 0 as the last that was to be "
                                 "published before it, which is 1"));
}

TEST_F(Verify, FindsASnapshotOfAnotherEvent) {
  append(*store, "order-1");
  append(*store, "order-2");
  store->save_snapshot(StreamId::parse("order-1"), {StreamVersion{1}, GlobalSequence{2}, 1, "{}"});
  EXPECT_THAT(problems_of(*store),
              ElementsAre("snapshots: the snapshot of 'order-1': event 2 isn't version 1 of its "
                          "stream"));
}

/// Adds to two counters, each of which takes a snapshot.
void add_to_both(Store& store) {
  using Counter = test::SnapshotCounter<2>;
  UnitOfWork unit{store};
  for (const char* const name : {"a", "b"}) {
    const auto id = Id<Counter>::from(name);
    Counter* const found = unit.find(id);
    Counter& counter = found != nullptr ? *found : unit.add(Counter{id});
    counter.add(1);
    counter.add(1);
  }
  unit.commit();
}

TEST_F(Verify, FindsNothingOnceASnapshotOnAnEventOfAnotherStreamIsDroppedAndTakenAgain) {
  add_to_both(*store);
  EXPECT_THAT(problems_of(*store), IsEmpty());
  EXPECT_THAT(problems_behind("DELETE FROM snapshots"), IsEmpty());
  const StreamId first = StreamId::parse("counter-a");
  store->save_snapshot(first, {StreamVersion{2}, GlobalSequence{4}, 1, R"({"sum":2})"});
  EXPECT_THAT(problems_of(*store), SizeIs(1));
  EXPECT_THAT(advice(), ElementsAre(HasSubstr("drop the snapshot")));

  store->drop_snapshot(first);
  add_to_both(*store);
  EXPECT_EQ(StoreOperations{*store}.list_snapshots().size(), 2U);
  EXPECT_THAT(problems_of(*store), IsEmpty());
}

TEST_F(Verify, FindsNothingOnceItsAdviceIsFollowed) {
  fill(30);
  const std::string blocks =
      "INSERT OR IGNORE INTO kind_blocks SELECT DISTINCT kind, sequence / 1024 FROM events";
  EXPECT_THAT(problems_behind("DELETE FROM kind_blocks"), Not(IsEmpty()));
  EXPECT_THAT(advice(), Each(HasSubstr("by " + blocks)));
  EXPECT_THAT(problems_behind(blocks), IsEmpty());

  EXPECT_THAT(problems_behind("UPDATE snapshots SET stream = 999 WHERE stream = "
                              "(SELECT stream FROM streams WHERE name = 'order-0')"),
              SizeIs(1));
  const std::string remove = "DELETE FROM snapshots WHERE stream = 999";
  EXPECT_THAT(advice(), ElementsAre(HasSubstr("by " + remove)));
  EXPECT_THAT(problems_behind(remove), IsEmpty());

  const std::string swap =
      "CREATE TABLE scratch (x INTEGER, y INTEGER, UNIQUE (x, y));"
      "CREATE TEMP TABLE roots AS SELECT name, rootpage FROM sqlite_schema"
      "  WHERE name IN ('sqlite_autoindex_scratch_1', 'sqlite_autoindex_events_1');"
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema AS s SET rootpage ="
      "  (SELECT r.rootpage FROM temp.roots AS r WHERE r.name <> s.name)"
      "  WHERE name IN (SELECT name FROM temp.roots)";
  EXPECT_THAT(problems_behind(swap), Not(IsEmpty()));
  EXPECT_THAT(advice(), Contains(HasSubstr("rebuild their index with REINDEX")));
  EXPECT_THAT(problems_behind("REINDEX"), IsEmpty());
}

TEST_F(Verify, SaysHowATriggerIsPutBack) {
  const auto follow = [&](const std::string& damage) {
    test::RawSqlite raw{path};
    raw.run(damage);
    const auto todo = advice();
    ASSERT_EQ(todo.size(), 1U);
    const std::string by = "put it back by ";
    ASSERT_THAT(todo.front(), HasSubstr(by));
    raw.run(todo.front().substr(todo.front().find(by) + by.size()));
    EXPECT_THAT(problems_of(*store), IsEmpty());
    EXPECT_THROW(raw.run("DELETE FROM events"), std::runtime_error);
  };
  append(*store, "order-1");
  follow("DROP TRIGGER events_are_never_deleted");
  follow(
      "DROP TRIGGER events_are_never_deleted;"
      "CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events BEGIN SELECT 1; END");
}

TEST_F(Verify, FindsAnIndexThatLostItsEntries) {
  fill(30);
  store.reset();
  {
    test::RawSqlite raw{path};
    raw.run(
        "PRAGMA writable_schema = ON;"
        "CREATE TABLE scratch (x INTEGER, y INTEGER, UNIQUE (x, y));"
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema "
        "  WHERE name = 'sqlite_autoindex_scratch_1') WHERE name = 'sqlite_autoindex_events_1'");
  }
  store = test::open_store(path, options);
  EXPECT_THAT(problems_of(*store),
              Contains(HasSubstr("its index of streams and versions has 0 entries for")));
}

TEST_F(Verify, ContinuesWithTheOtherChecksWhenOneFindsTooMuch) {
  fill(100);
  const auto problems = problems_behind(
      "UPDATE events SET payload = x'00'; UPDATE append_ids SET checksum = checksum + 1 "
      "WHERE append_id = 'the-command'");
  std::int64_t of_events = 0;
  for (const std::string& problem : problems) of_events += problem.starts_with("events: ") ? 1 : 0;
  EXPECT_EQ(of_events, 100);
  EXPECT_THAT(problems, Contains(HasSubstr("append id 'the-command'")));
}

TEST_F(Verify, EndsWhenItIsToldTo) {
  append(*store, "order-1", 3000);
  std::stop_source stop;
  const auto result =
      StoreOperations{*store}.verify([](const Problem&) {}, {.progress =
                                                                 [&](const Progress& progress) {
                                                                   if (progress.stage == "events")
                                                                     stop.request_stop();
                                                                 },
                                                             .stop = stop.get_token()});
  EXPECT_FALSE(result.finished);
  EXPECT_FALSE(result.is_sound());
  EXPECT_EQ(result.problems, 0);
}

TEST_F(Verify, HoldsNoReadTransactionBetweenPages) {
  append(*store, "order-1", 3000);
  int pages = 0;
  (void)StoreOperations{*store}.verify(
      [](const Problem&) {}, {.progress = [&](const Progress&) {
        ++pages;
        append(*store, "order-2");
        // Would be busy beside a reader.
        EXPECT_THAT(test::RawSqlite{path}.rows("PRAGMA wal_checkpoint(TRUNCATE)"),
                    ElementsAre("0|0|0"));
      }});
  EXPECT_GT(pages, 10);
}

TEST_F(Verify, RaisesNoFalseAlarmDuringWrites) {
  fill(50);
  auto other = test::open_store(path, options);
  other->attach(bystander);
  std::atomic<bool> done{false};
  std::vector<std::jthread> writers;
  for (Store* const target : {store.get(), other.get()}) {
    writers.emplace_back([&, target] {
      for (int i = 0; !done; ++i) {
        const std::string stream = "order-new_" + std::to_string(i % 400);
        const std::string type = "type_" + std::to_string(i % 900);
        const std::string id = std::to_string(reinterpret_cast<std::uintptr_t>(target)) + "-" +
                               std::to_string(i * 7919 % 100'003);
        const auto result = append(*target, stream, {{type, 1, i % 3 == 0, "{}"}}, id);
        if (result.repeated) continue;
        target->save_snapshot(StreamId::parse(stream), {result.versions[0], result.last, 1, "{}"});
      }
    });
  }
  while (store->last_sequence() < GlobalSequence{4000}) {
    EXPECT_THAT(problems_of(*store), IsEmpty());
  }
  done = true;
  writers.clear();
  EXPECT_THAT(problems_of(*store), IsEmpty());
}

TEST_F(Verify, NeedsNoMoreMemoryForALongHistory) {
  if (!test::peaks_are_of_the_work) GTEST_SKIP() << "the sanitizer's own memory would be measured";
  const std::string payload(4000, 'x');
  const std::vector<NewEvent> events(1000, NewEvent{"noted", 1, true, payload});
  for (int i = 0; i < 25; ++i) append(*store, "order-" + std::to_string(i), events);

  const std::int64_t peak = test::peak_mib_of([&] { EXPECT_THAT(problems_of(*store), IsEmpty()); });

  EXPECT_LT(peak, 16);
}

/// A check as another module makes one.
class OrdersCheck final : public IntegrityCheck {
 public:
  std::string_view name() const noexcept override { return "orders"; }
  void run(database::Inspection& inspection) override {
    inspection.read([&](database::Connection& connection) {
      const auto lost =
          sqlite::connection_of(connection).integer("SELECT count(*) FROM orders WHERE total < 0");
      if (lost.value_or(0) > 0) inspection.report("table orders", "a total is negative", "mend it");
    });
    inspection.read([&](database::Connection& connection) {
      (void)sqlite::connection_of(connection).integer("SELECT count(*) FROM no_such_table");
    });
  }
};

TEST_F(Verify, MakesTheChecksOfOtherModules) {
  store->transact([](Transaction& transaction) {
    test::RawSqlite{sqlite::handle(transaction)}.run(
        "CREATE TABLE orders (total INTEGER); INSERT INTO orders VALUES (-1)");
  });
  OrdersCheck check;
  IntegrityCheck* const checks[] = {&check};
  EXPECT_THAT(problems_of(*store, {.checks = checks}),
              ElementsAre("orders: table orders: a total is negative",
                          AllOf(HasSubstr("orders: the file: "), HasSubstr("no such table"))));
}

}  // namespace
}  // namespace stela::verify_test
