// The tool acts on sets of parked messages: by group, by plan, and says what became of them.
#include "support/process.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace stela::parked_test {
namespace {

using test::Ran;
using test::RawSqlite;
using test::run;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ParkedAlike : public test::ToolOutbox {
 protected:
  void SetUp() override {
    ToolOutbox::SetUp();
    for (int sequence = 1; sequence <= 3; ++sequence) park(sequence);
    RawSqlite{db_}.run("UPDATE outbox_parked SET failure = 'f0' WHERE sequence < 3");
  }
};

TEST_F(ParkedAlike, AreOneGroup) {
  const Ran ran = outbox({"groups", "--json"});

  EXPECT_THAT(ran.out, AllOf(HasSubstr("\"group\":\"f0\",\"streams\":2,\"type\":\"order.placed\""),
                             HasSubstr("\"group\":null,\"streams\":1")));
  EXPECT_THAT(outbox({"groups"}).out, AllOf(HasSubstr("older"), Not(HasSubstr("\x1b"))));
}

TEST_F(ParkedAlike, AreShownWithTheClassOfTheirFailure) {
  RawSqlite{db_}.run("UPDATE outbox_parked SET failure_class = 'too_large' WHERE sequence < 3");

  for (const std::vector<std::string>& words : {std::vector<std::string>{"show", "1", "--json"},
                                                {"list", "--json"},
                                                {"groups", "--json"}}) {
    EXPECT_THAT(outbox(words).out, HasSubstr(R"("failure_class":"too_large")")) << words.front();
  }
  EXPECT_THAT(outbox({"show", "1"}).out, HasSubstr("too_large"));
  EXPECT_THAT(outbox({"show", "3", "--json"}).out, HasSubstr(R"("failure_class":null)"));
  EXPECT_THAT(
      run({"why", "1", "--db", db_}).out,
      HasSubstr("→ raise max_payload of the server and restart it, or max_msg_size of the stream, "
                "whichever it names; then 'stela outbox retry 1'; 'stela outbox discard 1' "
                "gives it up"));
}

TEST_F(ParkedAlike, AreRetriedTogether) {
  EXPECT_EQ(outbox({"retry", "--group", "f0"}).out, "2 messages of 2 streams will be retried.\n");

  EXPECT_THAT(outbox({"groups", "--json"}).out, Not(HasSubstr("f0")));
}

TEST_F(ParkedAlike, AreDiscardedTogether) {
  EXPECT_EQ(outbox({"discard", "--group", "f0", "--yes"}).out,
            "2 messages of 2 streams discarded.\n");
}

TEST_F(ParkedAlike, AreListedByAPlan) {
  const Ran plan = outbox({"retry", "--group", "f0", "--dry-run"});

  EXPECT_THAT(plan.out, AllOf(HasSubstr("order-1"), HasSubstr("order-2"), Not(HasSubstr("order-3")),
                              HasSubstr("2 messages of 2 streams would be retried.")));
}

TEST_F(ParkedAlike, AreListedByTheFirstOfEachStream) {
  const Ran all = outbox({"list", "--group", "f0", "--json"});
  EXPECT_THAT(all.out, AllOf(StartsWith(R"({"sequence":1,"state":"parked")"),
                             HasSubstr(R"("stream":"order-2")"), Not(HasSubstr("order-3"))));

  const Ran first = outbox({"list", "--group", "f0", "--limit", "1"});
  EXPECT_THAT(first.err + first.out, AllOf(HasSubstr("order-1"), HasSubstr("--after 1")));
  EXPECT_THAT(outbox({"list", "--group", "f0", "--after", "1"}).out,
              AllOf(HasSubstr("order-2"), Not(HasSubstr("order-1"))));
  EXPECT_THAT(outbox({"list", "--group", "f0", "--newest-first", "--after", "2"}).out,
              AllOf(HasSubstr("order-1"), Not(HasSubstr("order-2"))));
  EXPECT_EQ(outbox({"list", "--group", "f9"}).code, 3);
  EXPECT_THAT(outbox({"list", "--group", "f0", "--state", "parked"}).err,
              HasSubstr("leave --state out"));
}

TEST_F(ParkedAlike, AreWaitedFor) {
  const Ran waits = outbox({"retry", "1", "--wait", "10ms"});

  EXPECT_EQ(waits.code, 1);
  EXPECT_THAT(waits.out, HasSubstr("Of the first ones 0 are published, 1 wait."));
}

/// A step of a retry and a step of its log take some milliseconds, and there are three hundred.
TEST_F(ParkedAlike, AreRetriedUntilASignalSaysOtherwise) {
  RawSqlite{db_}.run(
      "DELETE FROM outbox_parked; "
      "WITH RECURSIVE n(i) AS (VALUES (4) UNION ALL SELECT i + 1 FROM n WHERE i < 30003) "
      "INSERT INTO streams (stream, name) SELECT i, 'bulk-' || i FROM n; "
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error) "
      "SELECT stream, stream, 0, 0, 1, 'refused', 'no' FROM streams WHERE stream > 3");
  test::Running retry{{"outbox", "retry", "--all", "--db", db_}};
  ASSERT_TRUE(test::eventually([&] {
    return RawSqlite{db_}.integer(
               "SELECT count(*) FROM outbox_actions WHERE state = 'unfinished'") > 0;
  }));
  retry.signal(SIGTERM);

  EXPECT_EQ(retry.wait(), 130);
  EXPECT_THAT(retry.err(), ::testing::ContainsRegex("Interrupted after [0-9,]+ of 30,000 messages; "
                                                    "the same again does the rest"));
  EXPECT_THAT(run({"log", "--db", db_}).out,
              ::testing::ContainsRegex("unfinished +[0-9,]+ of 30,000 messages"));
  EXPECT_EQ(outbox({"retry", "--all"}).code, 0);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM outbox_redeliveries"), 30'000);
}

TEST_F(ParkedAlike, AreChosenInOneWay) {
  EXPECT_THAT(outbox({"retry", "1", "--group", "f0"}).err, HasSubstr("leave SEQUENCE and"));
  EXPECT_THAT(outbox({"discard", "1", "--group", "f0"}).err, HasSubstr("leave SEQUENCE and"));
}

TEST_F(ParkedAlike, AreCountedInJsonByThoseThatWereLeftAlone) {
  EXPECT_THAT(outbox({"retry", "1", "--json"}).out,
              HasSubstr(R"("messages":1,"streams":1,"joined":0,"changed":0,"left_alone":[])"));
}

}  // namespace
}  // namespace stela::parked_test
