// Rows that somebody or something changed behind Stela's back: what is read is what was stored, or
// an error that names the event.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::damaged_rows_test {
namespace {

using test::append;
using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Three events of order-1 (sequences 1, 2, 4) and one of order-2 (sequence 3).
class DamagedRows : public ::testing::Test {
 protected:
  DamagedRows() {
    store = test::open_store(path);
    append(*store, "order-1", 2);
    append(*store, "order-2");
    append(*store, "order-1");
    store.reset();
  }

  /// Runs `sql` with nothing in its way that a file edited by hand wouldn't have, and opens the
  /// store again.
  void damage(const std::string& sql) {
    test::RawSqlite raw{path};
    raw.drop_triggers();
    raw.run("PRAGMA ignore_check_constraints = ON; " + sql);
    store = test::open_store(path);
  }

  /// The sequences that a reader gets before the error, and what the error says.
  static std::string read(EventRange range) {
    std::string seen;
    const std::string error = message_of<CorruptEvent>([&] {
      for (const StoredEvent& event : range) seen += std::to_string(event.sequence.value()) + ' ';
    });
    return seen + error;
  }
  std::string read_all() { return read(store->read_all()); }
  std::string read_stream(std::string_view stream, Direction direction = Direction::forward) {
    return read(store->read_stream(StreamId::parse(stream), {.direction = direction}));
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> store;
};

TEST_F(DamagedRows, AreReportedWhenAPayloadChanged) {
  damage("UPDATE events SET payload = CAST('[]' AS BLOB) WHERE sequence = 2");

  const std::string expected =
      "1 event 2 is corrupt: it doesn't match its checksum; restore it from a backup";
  EXPECT_EQ(read_all(), expected);
  EXPECT_EQ(read_stream("order-1"), expected);
}

TEST_F(DamagedRows, AreReportedWhenAnythingElseOfAnEventChanged) {
  const std::vector<std::string> changes{"event_id = x'0190aaaaaaaa7aaa8aaaaaaaaaaaaaaa'",
                                         "causation_id = x'0190aaaaaaaa7aaa8aaaaaaaaaaaaaaa'",
                                         "correlation_id = 'another'",
                                         "recorded_at = recorded_at + 1",
                                         "metadata = '{\"actor\":\"mallory\"}'",
                                         "published_before = 1",
                                         "checksum = checksum + 1",
                                         "event_id = x'00'",
                                         "event_id = x''",
                                         "event_id = zeroblob(16)"};
  for (const std::string& change : changes) {
    test::RawSqlite{path}.run("VACUUM INTO '" + dir.file("copy.db") + "'");
    damage("UPDATE events SET " + change + " WHERE sequence = 2");

    EXPECT_THAT(read_all(), AllOf(HasSubstr("1 event 2 is corrupt"), HasSubstr("backup")))
        << change;
    store.reset();
    std::filesystem::rename(dir.file("copy.db"), path);
  }
}

TEST_F(DamagedRows, NamesAnEventThatWasReplaced) {
  // The triggers don't see the deletion in this.
  damage(
      "INSERT OR REPLACE INTO events SELECT sequence, stream, version, kind, recorded_at, "
      "event_id, correlation_id, causation_id, published_before, metadata, checksum, x'7b' "
      "FROM events WHERE sequence = 2");
  EXPECT_THAT(read_all(), HasSubstr("1 event 2 is corrupt"));
}

TEST_F(DamagedRows, NamesAnEventOfAKindThatIsNot) {
  damage("UPDATE events SET kind = 77 WHERE sequence = 2");
  EXPECT_EQ(
      read_all(),
      "1 event 2 is corrupt: it is of kind 77, which doesn't exist; restore it from a backup");
}

TEST_F(DamagedRows, NamesAnEventOfAnotherKind) {
  damage(
      "INSERT INTO event_kinds (kind, category, type, version, publishes)"
      "VALUES (2, 'order', 'shipped', 1, 0);"
      "UPDATE events SET kind = 2 WHERE sequence = 2");
  EXPECT_THAT(read_all(), HasSubstr("1 event 2 is corrupt: it doesn't match its checksum"));
}

TEST_F(DamagedRows, NamesAnEventWithoutAnId) {
  damage(
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema SET sql = replace(sql, 'event_id         BLOB NOT NULL', "
      "'event_id         BLOB         ') WHERE name = 'events';"
      "PRAGMA writable_schema = RESET;"
      "UPDATE events SET event_id = NULL WHERE sequence = 2");
  EXPECT_EQ(read_all(),
            "1 event 2 is corrupt: its version or id is invalid; restore it from a backup");
}

TEST_F(DamagedRows, NamesAnEventOfAnImpossibleVersion) {
  for (const std::string version : {"0", "-1", "-9223372036854775808"}) {
    damage("UPDATE events SET version = " + version + " WHERE sequence = 2");

    EXPECT_THAT(read_all(), HasSubstr("1 event 2 is corrupt: its version or id is invalid"));
    EXPECT_THAT(read_stream("order-1"),
                HasSubstr("1 event 4 is corrupt: it is version 3 of 'order-1', where version 2 is "
                          "expected"));
    store.reset();
  }
}

TEST_F(DamagedRows, NamesAnEventOfTheLargestVersion) {
  damage("UPDATE events SET version = 9223372036854775807 WHERE sequence = 4");

  EXPECT_THAT(read_all(), HasSubstr("1 2 3 event 4 is corrupt"));
  EXPECT_THAT(read_stream("order-1"), HasSubstr("1 2 event 4 is corrupt"));
  EXPECT_THAT(read_stream("order-1", Direction::backward), HasSubstr("event 4 is corrupt"));
}

TEST_F(DamagedRows, NamesAnEventWhoseStreamHasNoName) {
  damage("DELETE FROM streams WHERE name = 'order-2'");
  EXPECT_EQ(read_all(),
            "1 2 event 3 is corrupt: its stream, number 2, has no name; restore it from a backup");
}

TEST_F(DamagedRows, NamesAnEventWhoseStreamIsCalledSomethingElse) {
  damage("UPDATE streams SET name = 'order-3' WHERE name = 'order-2'");
  EXPECT_THAT(read_all(), HasSubstr("1 2 event 3 is corrupt: it doesn't match its checksum"));
  EXPECT_THAT(read_stream("order-3"), HasSubstr("event 3 is corrupt"));
}

TEST_F(DamagedRows, NamesAnEventWhoseStreamsNameCannotBeOne) {
  damage("UPDATE streams SET name = 'or der' WHERE name = 'order-2'");
  EXPECT_THAT(read_all(), HasSubstr("1 2 event 3 is corrupt: 'or der' can't be a stream name"));
}

TEST_F(DamagedRows, AreReportedWhenAnEventIsMissing) {
  damage("DELETE FROM events WHERE sequence = 2");

  EXPECT_EQ(read_all(), "1 event 2 is missing: event 3 is in its place; restore it from a backup");
  EXPECT_THAT(read_stream("order-1"), HasSubstr("1 event 4 is corrupt: it is version 3"));
  EXPECT_THAT(read_stream("order-1", Direction::backward),
              HasSubstr("4 event 1 is corrupt: it is version 1 of 'order-1', where version 2"));
  EXPECT_THAT(read(store->read_all({.direction = Direction::backward})),
              HasSubstr("4 3 event 2 is missing"));
}

TEST_F(DamagedRows, DoNotLetTheFirstEventGoMissing) {
  damage("DELETE FROM events WHERE sequence = 1");

  EXPECT_THAT(read_all(), HasSubstr("event 1 is missing"));
  EXPECT_THAT(read_stream("order-1"), HasSubstr("event 2 is corrupt: it is version 2"));
  EXPECT_EQ(read_stream("order-1", Direction::backward),
            "4 2 version 1 of 'order-1' is missing; restore it from a backup");
  EXPECT_EQ(read(store->read_all({.direction = Direction::backward})),
            "4 3 2 event 1 is missing; restore it from a backup");
}

TEST_F(DamagedRows, AreReportedAfterManyIntactOnes) {
  store = test::open_store(path);
  append(*store, "order-9", 3000);
  damage("UPDATE events SET payload = x'00' WHERE sequence = 2500");

  std::int64_t last = 0;
  const std::string error = message_of<CorruptEvent>([&] {
    for (const StoredEvent& event : store->read_all()) {
      ASSERT_EQ(event.sequence.value(), ++last);
    }
  });
  EXPECT_EQ(last, 2499);
  EXPECT_THAT(error, HasSubstr("event 2500 is corrupt"));
}

TEST_F(DamagedRows, LeaveOtherStreamsAlone) {
  damage("UPDATE events SET payload = x'00', version = -5 WHERE sequence = 4");

  EXPECT_EQ(append(*store, "order-2").versions.front(), StreamVersion{2});
  EXPECT_EQ(append(*store, "order-3").versions.front(), StreamVersion{1});
  EXPECT_THAT(test::lines(store->read_stream(StreamId::parse("order-2"))),
              ElementsAre("3 order-2@1 noted {}", "5 order-2@2 noted {}"));
}

TEST_F(DamagedRows, AreNotAppendedToWhereTheVersionCannotGrow) {
  damage("UPDATE events SET version = 9223372036854775807 WHERE sequence = 4");

  EXPECT_THAT(message_of<CorruptEvent>([&] { append(*store, "order-1"); }),
              HasSubstr("the version of 'order-1' can't grow any further"));
  EXPECT_EQ(append(*store, "order-2").last, GlobalSequence{5});
}

TEST_F(DamagedRows, AreNotAppendedToWhereTheSequenceCannotGrow) {
  damage("UPDATE events SET sequence = 9223372036854775807 WHERE sequence = 4");

  EXPECT_THAT(message_of<CorruptEvent>([&] { append(*store, "order-2"); }),
              HasSubstr("the sequence can't grow any further"));
  EXPECT_THAT(read_all(), HasSubstr("1 2 3 event 9223372036854775807 is corrupt"));
}

TEST_F(DamagedRows, AreNotAppendedToWhereTheLastEventIsOfNoKind) {
  damage("UPDATE events SET kind = 77 WHERE sequence = 4");

  EXPECT_THAT(message_of<CorruptEvent>([&] { append(*store, "order-1"); }),
              HasSubstr("the last event of 'order-1' is of an unknown kind"));
  EXPECT_EQ(append(*store, "order-2").last, GlobalSequence{5});
}

TEST_F(DamagedRows, OfFactsAreRefusedAtTheDoor) {
  EXPECT_THAT(message_of<SchemaMismatch>([&] {
                damage(
                    "UPDATE stela_facts SET value = '01900000-0000-7000-8000-000000000000' "
                    "WHERE name = 'store_id'");
              }),
              HasSubstr("the fact 'store_id' of this database doesn't match its checksum"));
}

TEST_F(DamagedRows, OfAppendIdsAreNotRepeated) {
  store = test::open_store(path);
  append(*store, "order-5", {{"noted", 1, false, "{}"}}, "command-1");
  damage("UPDATE append_ids SET first_sequence = 4, last_sequence = 4");

  EXPECT_THAT(message_of<CorruptEvent>([&] {
                append(*store, "order-5", {{"noted", 1, false, "{}"}}, "command-1");
              }),
              HasSubstr("append id 'command-1' doesn't match its checksum"));
}

}  // namespace
}  // namespace stela::damaged_rows_test
