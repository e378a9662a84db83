// What waits in the inbox of consumers, for operators and for monitoring systems.
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <stela/eventstore.hpp>
#include <stela/nats/consumer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace stela::test::inbox_test {
namespace {

using ::testing::HasSubstr;

class ToolInbox : public ::testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    auto store = sqlite::open(db_);
    const nats::Consumer billing{store, {.name = "billing"}};
    const nats::Consumer shipping{store, {.name = "shipping"}};
  }
  /// As a consumer leaves it: order-1 fails, and two more of it wait.
  void hold(std::chrono::seconds ago) {
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(
                           std::chrono::system_clock::now().time_since_epoch() - ago)
                           .count();
    RawSqlite raw{db_};
    for (int version = 1; version <= 3; ++version) {
      raw.run(
          "INSERT INTO inbox_held (held, consumer, source, stream, version, previous, event_id, "
          "broker_stream, broker_sequence, size, held_at, due_at) VALUES (" +
          std::to_string(version) + ", 1, 'shop', 'order-1', " + std::to_string(version) + ", " +
          std::to_string(version - 1) + ", zeroblob(16), 'SHOP', 7, 2, " + std::to_string(since) +
          ", " + (version == 1 ? std::to_string(since) : "NULL") + ")");
    }
    raw.run(
        "INSERT INTO inbox_failures (consumer, source, stream, version, attempts, error) "
        "VALUES (1, 'shop', 'order-1', 1, 4, 'no such customer')");
  }
  Ran inbox(std::vector<std::string> words) const {
    words.insert(words.begin(), "inbox");
    words.insert(words.end(), {"--db", db_});
    return run(words);
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("billing.db");
};

TEST_F(ToolInbox, ShowsHeldStreams) {
  hold(std::chrono::seconds{1});

  const std::string table = inbox({"held"}).out;
  EXPECT_THAT(table, HasSubstr("order-1"));
  EXPECT_THAT(table, HasSubstr("failing"));
  EXPECT_THAT(table, HasSubstr("no such customer"));
  const std::string json = inbox({"held", "--json"}).out;
  EXPECT_EQ(member(json, "held"), "1");
  EXPECT_EQ(member(json, "attempts"), "4");
  EXPECT_EQ(member(json, "waiting"), "2");
  EXPECT_EQ(member(json, "broker_sequence"), "7");
  const std::string status = inbox({"status", "--json"}).out;
  EXPECT_EQ(member(status, "held_streams"), "1");
  EXPECT_EQ(member(status, "held_messages"), "3");
}

TEST_F(ToolInbox, ListsDeadLettersWithTheirStreamsAndEvents) {
  constexpr const char* id = "019b76da-a800-7000-970e-1303597c5ff3";
  const auto bury = [&](int sequence, const std::string& headers) {
    RawSqlite{db_}.run(
        "INSERT INTO inbox_dead_letters (consumer, broker_stream, broker_sequence, broker_time, "
        "subject, headers, payload, dead_at, attempts, error) VALUES (1, 'SHOP', " +
        std::to_string(sequence) + ", 0, 'stela.order.placed', '" + headers +
        "', x'', 0, 5, 'no such customer')");
  };
  bury(7, R"({"ce-subject":"order-%e6%97%a5","ce-id":")" + std::string{id} + "\"}");
  bury(8, R"({"ce-subject":"order-%zz"})");
  bury(9, "{}");
  const std::string vast(10'000, 's');
  bury(10, R"({"ce-subject":")" + vast + R"(","ce-id":")" + vast + "\"}");

  const std::string table = inbox({"list"}).out;
  EXPECT_LT(lines_of(table).at(0).size(), 400U) << "one message widens no column";
  EXPECT_THAT(table, HasSubstr("order-日"));
  EXPECT_THAT(table, HasSubstr(id));
  EXPECT_THAT(table, HasSubstr("no such customer"));
  const auto letters = lines_of(inbox({"list", "--json"}).out);
  ASSERT_EQ(letters.size(), 4U);
  EXPECT_EQ(member(letters[3], "stream"), vast);
  EXPECT_EQ(member(letters[0], "stream"), "order-日");
  EXPECT_EQ(member(letters[0], "event_id"), id);
  EXPECT_EQ(member(letters[1], "stream"), "order-%zz") << "as it stands there";
  EXPECT_EQ(member(letters[2], "stream"), "");
}

TEST_F(ToolInbox, ReleasesAHeldStream) {
  hold(std::chrono::seconds{1});

  EXPECT_EQ(inbox({"release", "1", "--skip", "--yes"}).code, 0);
  EXPECT_THAT(inbox({"held"}).out, HasSubstr("released"));
  EXPECT_EQ(RawSqlite{db_}.rows("SELECT wish FROM inbox_held WHERE held = 1").at(0), "skip");
  EXPECT_EQ(inbox({"release", "1"}).code, 0);
  EXPECT_EQ(RawSqlite{db_}.rows("SELECT wish FROM inbox_held WHERE held = 1").at(0), "retry");
  const Ran other = inbox({"release", "2"});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("there is no held stream 2"));
}

TEST_F(ToolInbox, PutsNoTablesIntoADatabaseWithoutAnInbox) {
  const std::string shop = dir_.file("shop.db");
  run_well({"migrate", "--db", shop});
  for (const std::string command : {"status", "list", "held", "gaps"}) {
    EXPECT_EQ(run_well({"inbox", command, "--db", shop, "--json"}), "") << command;
  }
  EXPECT_EQ(run_well({"inbox", "check", "--db", shop}).substr(0, 2), "OK");
  EXPECT_EQ(run({"inbox", "retry", "1", "--db", shop}).code, 3);
  EXPECT_EQ(run({"inbox", "release", "1", "--db", shop}).code, 3);

  EXPECT_EQ(RawSqlite{shop}.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'inbox%'"),
            0);
}

TEST_F(ToolInbox, RaisesAnAlarm) {
  EXPECT_EQ(inbox({"check"}).code, 0);
  hold(std::chrono::seconds{100});

  const Ran seen = inbox({"check", "--format", "nagios"});
  EXPECT_EQ(seen.code, 1);
  EXPECT_THAT(seen.out, HasSubstr("STELA INBOX WARNING - held is 10"));
  EXPECT_EQ(inbox({"check", "--max-held", "90s"}).code, 2);
  EXPECT_EQ(inbox({"check", "--warn-held", "1h"}).code, 0);
  EXPECT_EQ(inbox({"check", "--max-streams", "0"}).code, 2);
  EXPECT_EQ(inbox({"check", "--consumer", "shipping"}).code, 0);
  EXPECT_THAT(inbox({"check", "--format", "prometheus"}).out,
              HasSubstr("\nstela_inbox_check_held_streams 1\n"));
  EXPECT_EQ(run({"inbox", "check", "--db", dir_.file("none.db")}).code, 3);
}

TEST_F(ToolInbox, IsLookedAtByTheDoctor) {
  const auto doctor = [&] { return run({"doctor", "--db", db_}).out; };
  EXPECT_THAT(doctor(), HasSubstr("ok       inbox: consumer 'billing' has handled"));
  hold(std::chrono::seconds{90});
  RawSqlite{db_}.run(
      "INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at) "
      "VALUES (1, 'shop', 'order-1', 1, 3, 2, 0)");
  RawSqlite{db_}.run(
      "INSERT INTO inbox_dead_letters VALUES (1, 1, 'SHOP', 9, 0, 's', '{}', x'', 0, 5, 'no', 0)");
  EXPECT_THAT(doctor(), HasSubstr("warning  inbox: consumer 'billing' gave up 1 message"));
  EXPECT_THAT(doctor(),
              HasSubstr("warning  inbox: consumer 'billing' holds 1 stream, the first for "));
  EXPECT_THAT(doctor(), HasSubstr("'inbox held' says why"));
  EXPECT_THAT(doctor(), HasSubstr("missed messages of its streams: 1 gap"));
  EXPECT_THAT(doctor(), HasSubstr("ok       inbox: consumer 'shipping' has handled"));
}

TEST_F(ToolInbox, KnowsNoConsumerOfAnotherName) {
  const Ran checked = inbox({"check", "--consumer", "biling"});
  EXPECT_EQ(checked.code, 3);
  EXPECT_EQ(checked.out, "UNKNOWN: there is no consumer 'biling'. Did you mean 'billing'?\n");
  for (const std::string command : {"held", "list", "gaps"}) {
    const Ran ran = inbox({command, "--consumer", "biling"});
    EXPECT_EQ(ran.code, 3) << command;
    EXPECT_THAT(ran.err, HasSubstr("there is no consumer 'biling'")) << command;
    EXPECT_EQ(inbox({command, "--consumer", "billing", "--json"}).code, 0) << command;
  }
}

TEST_F(ToolInbox, RaisesAnAlarmForGapsIfAsked) {
  RawSqlite{db_}.run(
      "INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at) "
      "VALUES (1, 'shop', 'order-1', 1, 3, 2, 0)");
  EXPECT_EQ(inbox({"check"}).code, 0);
  EXPECT_EQ(inbox({"check", "--warn-gaps", "0"}).code, 1);
  EXPECT_EQ(inbox({"check", "--max-gaps", "0"}).out, "CRITICAL: gaps is 1, more than 0\n");
  EXPECT_EQ(inbox({"check", "--max-gaps", "1"}).code, 0);
}

}  // namespace
}  // namespace stela::test::inbox_test
