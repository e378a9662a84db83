// What monitoring systems are told of an outbox.
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test::outbox_check_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(ToolOutbox, ChecksForMonitoringSystems) {
  const auto check = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"check", "--min-workers", "0"});
    return outbox(std::move(words));
  };
  EXPECT_EQ(check({}).code, 0);
  EXPECT_EQ(check({"--max-pending", "3"}).code, 0);
  const Ran many = check({"--max-pending", "2"});
  EXPECT_EQ(many.code, 2);
  EXPECT_EQ(many.out, "CRITICAL: pending is 3, more than 2\n");
  const Ran nagios = check({"--max-pending", "2", "--format", "nagios"});
  EXPECT_THAT(nagios.out, HasSubstr("STELA OUTBOX CRITICAL - pending is 3, more than 2 | lag="));
  EXPECT_THAT(nagios.out, HasSubstr("s;60;300 unanswered=0s;10;300 parked=0;0; pending=3;;2 "
                                    "cut_off=0;0; misconfigured=0;0; stopped=0;;0"));
  EXPECT_EQ(member(check({"--json"}).out, "state"), "ok");
  EXPECT_THAT(outbox({"check", "--format", "prometheus"}).out,
              HasSubstr("# TYPE stela_outbox_check_lag_seconds gauge\n"));
  EXPECT_EQ(run({"outbox", "check", "--db", dir_.file("none.db")}).code, 3);
}

TEST_F(ToolOutbox, ChecksSayUnknownWhereTheyAreMisused) {
  const auto unknown = [&](const std::vector<std::string>& words, const std::string& why) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_THAT(ran.out, StartsWith("UNKNOWN: "));
    EXPECT_THAT(ran.out, HasSubstr(why));
    EXPECT_THAT(lines_of(ran.out), SizeIs(1));
  };
  for (const std::string what : {"outbox", "inbox"}) {
    unknown({what, "check", "--db", db_, "--max-lagg", "1s"}, "no option --max-lagg");
    unknown({what, "check", "--db", db_, "17"}, "one word too many");
    unknown({what, "check", "--db", db_, "--format", "xml"}, "--format is text, nagios");
    unknown({what, "check", "--db", db_, "--set", "outbox.windw=7"}, "outbox.windw");
    unknown({what, "check", "--db"}, "--db needs a value");
    unknown({what, "check"}, "which database?");
  }
  unknown({"outbox", "check", "--db", db_, "--max-lag", "7"}, "500ms, 7s, 7m, 7h or 7d, not '7'");
  unknown({"inbox", "check", "--db", db_, "--max-parked", "-1"}, "--max-parked");
  unknown({"outbox", "check", "--db", db_, "--warn-lag", "2m", "--max-lag", "1m"},
          "--warn-lag is above --max-lag");
  unknown({"outbox", "check", "--db", db_, "--warn-pending", "2", "--max-pending", "1"},
          "--warn-pending is above --max-pending");
  const Ran json = outbox({"check", "--max-lag", "soon", "--json"});
  EXPECT_EQ(json.code, 3);
  EXPECT_EQ(member(json.out, "state"), "unknown");
  EXPECT_THAT(outbox({"check", "--max-lag", "soon", "--format", "nagios"}).out,
              StartsWith("STELA OUTBOX UNKNOWN - "));
  EXPECT_EQ(outbox({"chekc"}).code, 2);
  EXPECT_EQ(run({"outbox", "check", "--help"}).code, 0);
}

TEST_F(ToolOutbox, SaysThatMoreIsPendingThanWasCounted) {
  RawSqlite{db_}.run(
      "WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) "
      "INSERT INTO outbox_messages (partition, sequence, stream) SELECT 0, i, 1 FROM n");
  const auto check = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"check", "--min-workers", "0"});
    return outbox(std::move(words));
  };
  const Ran status = outbox({"status"});
  EXPECT_THAT(status.out, HasSubstr("pending    10,000+\n"));
  EXPECT_THAT(status.out, ContainsRegex("all +10,000\\+ "));
  const Ran json = outbox({"status", "--json"});
  EXPECT_EQ(member(json.out, "pending"), "10000");
  EXPECT_EQ(member(json.out, "pending_is_lower_bound"), "true");
  EXPECT_THAT(check({}).out, StartsWith("OK: 10,000+ waiting, lag "));
  EXPECT_EQ(check({"--max-pending", "9999"}).out,
            "CRITICAL: pending is at least 10000, more than 9999\n");
  EXPECT_EQ(member(check({"--json"}).out, "pending_is_lower_bound"), "true");
  EXPECT_THAT(check({"--max-pending", "10000"}).out,
              StartsWith("UNKNOWN: --max-pending is a whole number from 0 to 9999"));
}

TEST_F(ToolOutbox, ChecksPrintPlainNumbers) {
  const Ran ran = outbox({"check", "--format", "nagios", "--min-workers", "1000000", "--max-lag",
                          "0s", "--max-pending", "9999", "--warn-pending", "1000"});
  EXPECT_THAT(ran.out, HasSubstr("3 messages are pending, and there is no live worker"));
  EXPECT_THAT(ran.out, HasSubstr("pending=3;1000;9999"));
  RawSqlite raw{db_};
  raw.drop_triggers();
  raw.run("UPDATE events SET recorded_at = recorded_at - 4000000000000");
  const Ran late = outbox({"check", "--format", "nagios", "--min-workers", "0"});
  EXPECT_THAT(late.out, HasSubstr("the oldest message has been pending for 46 d 7 h"));
  EXPECT_THAT(late.out, ContainsRegex("lag=40000[0-9][0-9]([.][0-9]+)?s;60;300"));
  EXPECT_THAT(outbox({"check", "--format", "prometheus"}).out,
              ContainsRegex("_lag_seconds 40000[0-9][0-9]"));
}

TEST_F(ToolOutbox, ChecksAgainstDefaultLimits) {
  const Ran unattended = outbox({"check"});
  EXPECT_EQ(unattended.code, 2);
  EXPECT_EQ(unattended.out, "CRITICAL: 3 messages are pending, and there is no live worker\n");
  EXPECT_THAT(outbox({"check", "--format", "nagios"}).out, HasSubstr(" workers=0;;1:"));

  park(2);
  const Ran parked = outbox({"check", "--min-workers", "0"});
  EXPECT_EQ(parked.code, 1);
  EXPECT_EQ(parked.out, "WARNING: 1 message parked: all 1\n");
  EXPECT_EQ(outbox({"check", "--min-workers", "0", "--warn-parked", "1"}).code, 0);

  RawSqlite raw{db_};
  raw.drop_triggers();
  raw.run("UPDATE events SET recorded_at = recorded_at - 61000000 WHERE sequence = 1");
  EXPECT_EQ(outbox({"check", "--min-workers", "0", "--warn-parked", "1"}).code, 1);
  raw.run("UPDATE events SET recorded_at = recorded_at - 240000000 WHERE sequence = 1");
  EXPECT_EQ(outbox({"check", "--min-workers", "0"}).code, 2);
}

TEST_F(ToolOutbox, SaysForHowLongTheBrokerHasNotAnswered) {
  const auto check = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"check", "--min-workers", "0"});
    return outbox(std::move(words));
  };
  fly(0);
  EXPECT_THAT(outbox({"status"}).out, Not(HasSubstr("no answer from the broker")));
  EXPECT_EQ(check({}).code, 0);

  fly(3'665);
  EXPECT_THAT(outbox({"status"}).out, HasSubstr("no answer from the broker for 1 h 1 min"));
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("critical partition_unanswered: partition all: no answer from the broker "
                        "for 1 h 1 min\n"));
  const Ran late = check({"--max-unanswered", "2h"});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.out,
              HasSubstr("WARNING: partition all: no answer from the broker for 1 h 1 min"));
  EXPECT_EQ(check({"--warn-unanswered", "2h", "--max-unanswered", "2h"}).code, 0);
  EXPECT_EQ(check({}).code, 2);
  EXPECT_EQ(check({"--warn-unanswered", "2h", "--max-unanswered", "1h"}).code, 3);

  land();
  EXPECT_EQ(check({}).code, 0);
}

TEST_F(ToolOutbox, ChecksThatCantBePrintedAreUnknown) {
  const Ran ran = run({"-c", R"(exec "$0" "$@" > /dev/full)", program(), "outbox", "check", "--db",
                       db_, "--min-workers", "0"},
                      {.program = "/bin/sh"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("stdout can't be written"));
}

}  // namespace
}  // namespace stela::test::outbox_check_test
