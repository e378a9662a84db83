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
using ::testing::Not;

class ToolInbox : public ::testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    auto store = sqlite::open(db_);
    const nats::Consumer billing{store, {.name = "billing"}};
    const nats::Consumer shipping{store, {.name = "shipping"}};
  }
  /// As a consumer leaves it: order-1 failed, and one more of it waits.
  void park() {
    RawSqlite raw{db_};
    for (int version = 1; version <= 2; ++version) {
      raw.run(
          "INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, "
          "source, "
          "stream, version, subject, headers, payload, parked_at, attempts, error) VALUES (1, "
          "'STELA', " +
          std::to_string(6 + version) + ", 0, 'shop', 'order-1', " + std::to_string(version) +
          R"(, 's', '{"ce-subject":"order-1"}', x'', 0, )" +
          (version == 1 ? "5, 'no such customer')" : "0, '')"));
    }
  }
  void fail() {
    RawSqlite{db_}.run(
        "UPDATE inbox_readers SET position = 6, failing = 7, attempts = 4, error = 'no such "
        "customer' WHERE consumer = 1");
  }
  Ran inbox(std::vector<std::string> words) const {
    words.insert(words.begin(), "inbox");
    words.insert(words.end(), {"--db", db_});
    return run(words);
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("billing.db");
};

TEST_F(ToolInbox, ShowsWhereAConsumerIs) {
  EXPECT_THAT(inbox({"status"}).out, HasSubstr("no reader"));
  fail();
  park();

  const std::string table = inbox({"status"}).out;
  EXPECT_THAT(table, HasSubstr("failing"));
  EXPECT_THAT(table, HasSubstr("no such customer"));
  const std::string json = inbox({"status", "--json"}).out;
  EXPECT_EQ(member(json, "broker_stream"), "STELA");
  EXPECT_EQ(member(json, "position"), "6");
  EXPECT_EQ(member(json, "attempts"), "4");
  EXPECT_EQ(member(json, "parked"), "2");
  EXPECT_EQ(member(json, "parked_streams"), "1");
}

TEST_F(ToolInbox, ListsParkedMessagesWithTheirStreamsAndEvents) {
  constexpr const char* id = "019b76da-a800-7000-970e-1303597c5ff3";
  const auto insert = [&](int sequence, const std::string& headers) {
    RawSqlite{db_}.run(
        "INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, "
        "subject, headers, payload, parked_at, attempts, error) VALUES (1, 'SHOP', " +
        std::to_string(sequence) + ", 0, 'stela.order.placed', '" + headers +
        "', x'', 0, 5, 'no such customer')");
  };
  insert(7, R"({"ce-subject":"order-%e6%97%a5","ce-id":")" + std::string{id} + "\"}");
  insert(8, R"({"ce-subject":"order-%zz"})");
  insert(9, "{}");
  const std::string vast(10'000, 's');
  insert(10, R"({"ce-subject":")" + vast + R"(","ce-id":")" + vast + "\"}");

  const std::string table = inbox({"list"}).out;
  EXPECT_LT(lines_of(table).at(0).size(), 400U) << "one message widens no column";
  EXPECT_THAT(table, HasSubstr("order-日"));
  EXPECT_THAT(table, HasSubstr(id));
  EXPECT_THAT(table, HasSubstr("no such customer"));
  const auto parked = lines_of(inbox({"list", "--json"}).out);
  ASSERT_EQ(parked.size(), 4U);
  EXPECT_EQ(member(parked[3], "stream"), vast);
  EXPECT_EQ(member(parked[0], "stream"), "order-日");
  EXPECT_EQ(member(parked[0], "event_id"), id);
  EXPECT_EQ(member(parked[1], "stream"), "order-%zz") << "as it stands there";
  EXPECT_EQ(member(parked[2], "stream"), "null");
}

TEST_F(ToolInbox, ListsFromEitherEnd) {
  for (int i = 1; i <= 3; ++i) {
    const std::string number = std::to_string(i);
    RawSqlite{db_}.run(
        "INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, subject, "
        "headers, payload, parked_at, attempts, error) VALUES (1, 'SHOP', " +
        number + R"(, 0, 's', '{"ce-type":"order.)" + (i == 2 ? "paid" : "placed") +
        "\"}', x'', (unixepoch() - 60 * " + number + ") * 1000000, 5, 'no')");
    RawSqlite{db_}.run(
        "INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at) VALUES "
        "(1, 'shop', 'order-1', 1, 4, 3, (unixepoch() - 60 * " +
        number + ") * 1000000)");
  }
  const auto listed = [&](std::vector<std::string> words) {
    const std::string number = words.front() == "list" ? "parked" : "gap";
    words.emplace_back("--json");
    std::string numbers;
    for (const std::string& line : lines_of(inbox(words).out)) numbers += member(line, number);
    return numbers;
  };

  for (const char* const list : {"list", "gaps"}) {
    SCOPED_TRACE(list);
    EXPECT_EQ(listed({list}), "123");
    EXPECT_EQ(listed({list, "--newest-first"}), "321");
    EXPECT_EQ(inbox({list, "--limit", "2"}).err, "more: --after 2\n");
    EXPECT_EQ(listed({list, "--after", "2"}), "3");
    EXPECT_EQ(listed({list, "--after", "2", "--newest-first"}), "1");
    EXPECT_EQ(listed({list, "--since", "90s"}), "1");
    EXPECT_EQ(listed({list, "--until", "90s"}), "23");
    EXPECT_EQ(listed({list, "--consumer", "shipping"}), "");
  }
  EXPECT_EQ(listed({"list", "--type", "order.placed"}), "13");
  EXPECT_EQ(inbox({"list", "--type", "order.placed", "--limit", "1"}).err, "more: --after 1\n");
}

TEST_F(ToolInbox, RetriesAStreamAndDiscardsItsFirstMessage) {
  park();

  const Ran behind = inbox({"retry", "2"});
  EXPECT_EQ(behind.code, 2);
  EXPECT_THAT(behind.err, HasSubstr("waits behind message 1 of its stream; retry that one"));
  EXPECT_THAT(inbox({"list"}).out, HasSubstr("behind another"));
  EXPECT_EQ(inbox({"retry", "1"}).code, 0);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM inbox_parked WHERE retry = 1"), 2);
  EXPECT_THAT(inbox({"list"}).out, HasSubstr("to be retried"));
  EXPECT_EQ(inbox({"discard", "1", "--yes"}).code, 0);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM inbox_parked"), 1);
  EXPECT_EQ(inbox({"discard", "1", "--yes"}).code, 3);
}

TEST_F(ToolInbox, PausesResumesMovesAndForgets) {
  EXPECT_EQ(inbox({"pause", "billing"}).code, 0);
  EXPECT_THAT(inbox({"status"}).out, HasSubstr("paused"));
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("'stela inbox resume billing' ends that"));
  EXPECT_EQ(inbox({"resume", "billing"}).code, 0);
  EXPECT_THAT(inbox({"status"}).out, Not(HasSubstr("paused")));
  EXPECT_EQ(inbox({"pause", "biling"}).code, 3);
  EXPECT_EQ(inbox({"move", "billing", "STELA", "77", "--yes"}).code, 0);
  EXPECT_EQ(member(inbox({"status", "--json"}).out, "position"), "77");
  EXPECT_EQ(inbox({"move", "billing", "STELA", "-1", "--yes"}).code, 2);
  EXPECT_EQ(inbox({"forget", "billing", "NONE", "--yes"}).code, 3);
  EXPECT_EQ(inbox({"forget", "billing", "STELA", "--yes"}).code, 0);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM inbox_readers"), 1);
}

TEST_F(ToolInbox, MovesNoConsumerThatIsMistyped) {
  const Ran refused = inbox({"move", "biling", "STELA", "77", "--yes"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("there is no consumer 'biling' of the stream 'STELA'; there "
                                     "are 'billing' of 'STELA', "));
  EXPECT_THAT(refused.err, HasSubstr("If it is still to be started in this database, pass --new"));
  EXPECT_EQ(inbox({"move", "billing", "STELLA", "77", "--yes"}).code, 3);
  EXPECT_EQ(inbox({"move", "billing", "STELA", "77", "--new", "--yes"}).code, 2);
  EXPECT_EQ(inbox({"move", "bil ling", "STELA", "77", "--new", "--yes"}).code, 2);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM inbox_consumers"), 2);

  EXPECT_EQ(inbox({"move", "invoices", "STELA", "77", "--new", "--yes"}).code, 0);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM inbox_consumers"), 3);
}

TEST_F(ToolInbox, ForgetsNothingThatIsBeingRead) {
  const auto soon =
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch() + std::chrono::seconds{10})
          .count();
  RawSqlite{db_}.run(
      "UPDATE inbox_readers SET owner = 'one', lease_ttl = 15000000, lease_until = " +
      std::to_string(soon));

  const Ran refused = inbox({"forget", "billing", "STELA", "--yes"});

  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("'one' reads the stream 'STELA'"));
}

TEST_F(ToolInbox, PutsNoTablesIntoADatabaseWithoutAnInbox) {
  const std::string shop = dir_.file("shop.db");
  run_well({"migrate", "--db", shop});
  for (const std::string command : {"status", "list", "gaps"}) {
    EXPECT_EQ(run_well({"inbox", command, "--db", shop, "--json"}), "") << command;
  }
  EXPECT_EQ(run_well({"inbox", "check", "--db", shop}).substr(0, 2), "OK");
  EXPECT_EQ(run({"inbox", "retry", "1", "--db", shop}).code, 3);
  EXPECT_EQ(run({"inbox", "pause", "billing", "--db", shop}).code, 3);

  EXPECT_EQ(RawSqlite{shop}.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'inbox%'"),
            0);
}

TEST_F(ToolInbox, RaisesAnAlarm) {
  EXPECT_EQ(inbox({"check"}).code, 0);
  park();
  fail();

  const Ran seen = inbox({"check", "--format", "nagios"});
  EXPECT_EQ(seen.code, 1);
  EXPECT_THAT(seen.out, HasSubstr("STELA INBOX WARNING - consumer 'billing' parked 2 messages"));
  EXPECT_EQ(inbox({"check", "--max-parked", "1"}).code, 2);
  EXPECT_EQ(inbox({"check", "--warn-parked", "2"}).code, 0);
  EXPECT_EQ(inbox({"check", "--max-streams", "0"}).code, 2);
  EXPECT_EQ(inbox({"check", "--max-failing", "0"}).code, 2);
  EXPECT_EQ(inbox({"check", "--consumer", "shipping"}).code, 0);
  EXPECT_THAT(inbox({"check", "--format", "prometheus"}).out,
              HasSubstr("\nstela_inbox_check_parked_streams 1\n"));
  EXPECT_EQ(run({"inbox", "check", "--db", dir_.file("none.db")}).code, 3);
}

TEST_F(ToolInbox, IsLookedAtByTheDoctor) {
  const auto doctor = [&] { return run({"doctor", "--db", db_}).out; };
  EXPECT_THAT(doctor(), HasSubstr("warning  consumer_unattended: nobody reads"));
  RawSqlite{db_}.run(
      "UPDATE inbox_readers SET owner = 'one', lease_ttl = 3600000000, lease_until = "
      "(strftime('%s', 'now') + 3600) * 1000000");
  EXPECT_THAT(doctor(), HasSubstr("ok       inbox: consumer 'billing' has handled"));
  park();
  fail();
  RawSqlite{db_}.run(
      "INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at) "
      "VALUES (1, 'shop', 'order-1', 1, 3, 2, 0)");
  EXPECT_THAT(doctor(),
              HasSubstr("warning  consumer_parked: consumer 'billing' parked 2 messages"));
  EXPECT_THAT(doctor(),
              HasSubstr("warning  consumer_failing: consumer 'billing' fails at message 7 of "
                        "'STELA': no such customer"));
  EXPECT_THAT(doctor(), HasSubstr("missed messages of its streams: 1 gap"));
  EXPECT_THAT(doctor(), HasSubstr("ok       inbox: consumer 'shipping' has handled"));
}

TEST_F(ToolInbox, KnowsNoConsumerOfAnotherName) {
  const Ran checked = inbox({"check", "--consumer", "biling"});
  EXPECT_EQ(checked.code, 3);
  EXPECT_EQ(checked.out, "UNKNOWN: there is no consumer 'biling'. Did you mean 'billing'?\n");
  for (const std::string command : {"list", "gaps"}) {
    const Ran ran = inbox({command, "--consumer", "biling"});
    EXPECT_EQ(ran.code, 3) << command;
    EXPECT_THAT(ran.err, HasSubstr("there is no consumer 'biling'")) << command;
    EXPECT_EQ(inbox({command, "--consumer", "billing", "--json"}).code, 0) << command;
  }
}

/// Its process has ended, or hangs, and no other one has taken over.
TEST_F(ToolInbox, RaisesAnAlarmForAReaderWhoseLeaseIsOver) {
  RawSqlite{db_}.run("UPDATE inbox_readers SET owner = 'one', lease_until = 1 WHERE consumer = 1");

  EXPECT_EQ(inbox({"check"}).code, 2);
  EXPECT_EQ(inbox({"check", "--max-overdue", "1"}).code, 0);
  EXPECT_THAT(inbox({"status"}).out, HasSubstr("reader is gone or hangs"));
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("consumer 'billing' doesn't read 'STELA': the lease of 'one' is over"));
}

/// A resize lets it wait for a moment, and so does a restart.
TEST_F(ToolInbox, RaisesAnAlarmForAConsumerThatHasStoodStillForAMinute) {
  const auto let = [&](const std::string& what) {
    RawSqlite{db_}.run("UPDATE inbox_readers SET owner = NULL, lease_until = 0, error = '', " +
                       what + " WHERE consumer = 1");
  };
  const std::string ago = "(unixepoch() - 90) * 1000000";
  const std::string owned = "owner = 'one', lease_until = (unixepoch() + 3600) * 1000000, ";
  let(owned + "error = 'for SHOP_p01', waits_at = 2, failing_since = unixepoch() * 1000000");
  EXPECT_EQ(inbox({"check"}).code, 0);
  let(owned + "error = 'for SHOP_p01', waits_at = 2, failing_since = " + ago);
  EXPECT_EQ(inbox({"check"}).code, 1);
  EXPECT_EQ(inbox({"check"}).out, "WARNING: consumer 'billing' waits at 'STELA': for SHOP_p01\n");
  EXPECT_THAT(run({"check", "--db", db_}).out,
              HasSubstr("WARNING: consumer 'billing' waits at 'STELA': for SHOP_p01 (for 1"));
  EXPECT_EQ(inbox({"check", "--warn-standing", "1"}).code, 0);
  EXPECT_EQ(inbox({"check", "--max-standing", "0"}).code, 2);

  let("waits_at = 0, failing_since = NULL, unread_since = unixepoch() * 1000000");
  EXPECT_EQ(inbox({"check"}).code, 0);
  let("unread_since = " + ago);
  EXPECT_EQ(inbox({"check"}).out, "WARNING: nobody reads 'STELA' for consumer 'billing'\n");
}

TEST_F(ToolInbox, RaisesAnAlarmForGapsIfAsked) {
  RawSqlite{db_}.run(
      "INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at) "
      "VALUES (1, 'shop', 'order-1', 1, 3, 2, 0)");
  EXPECT_EQ(inbox({"check"}).code, 0);
  EXPECT_EQ(inbox({"check", "--warn-gaps", "0"}).code, 1);
  EXPECT_EQ(inbox({"check", "--max-gaps", "0"}).out,
            "CRITICAL: consumer 'billing' missed messages of its streams: 1 gap\n");
  EXPECT_EQ(inbox({"check", "--max-gaps", "1"}).code, 0);
}

}  // namespace
}  // namespace stela::test::inbox_test
