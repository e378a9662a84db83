// How stopped partitions are adopted, and partitions that are backing off tried.
#include "nats/jetstream.hpp"
#include "support/nats_server.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test::adopt_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Adopting : public ToolOutbox {
 protected:
  void stop(const std::string& reason, const std::string& which = "1") const {
    RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = '" + reason +
                       "', stopped_detail = 'as it says' WHERE " + which);
  }
  std::string stopped() const { return member(outbox({"status", "--json"}).out, "stopped"); }
};

TEST_F(Adopting, ResumesAllStoppedPartitionsAtOnce) {
  ASSERT_EQ(outbox({"partitions", "resize", "16"}).code, 0);
  stop("broker_lost");

  const Ran asked = outbox({"partitions", "adopt", "--all"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, AllOf(HasSubstr("p00 p01"), HasSubstr("--yes")));
  EXPECT_EQ(stopped(), "17");

  const Ran adopted = outbox({"partitions", "adopt", "--all", "--yes"});
  EXPECT_EQ(adopted.code, 0);
  EXPECT_THAT(adopted.err, AllOf(HasSubstr("Partition p00 resumes"), HasSubstr("Partition p15")));
  EXPECT_EQ(stopped(), "0");
}

TEST_F(Adopting, LeavesPartitionsThatNeedAnotherAction) {
  ASSERT_EQ(outbox({"partitions", "resize", "4"}).code, 0);
  stop("poison");
  stop("unreadable", "partition = (SELECT max(partition) FROM outbox_partitions)");

  const Ran adopted = outbox({"partitions", "adopt", "--all", "--yes"});

  EXPECT_EQ(adopted.code, 0);
  EXPECT_THAT(adopted.err, AllOf(HasSubstr("Partition p03 resumes"),
                                 HasSubstr("Partition p00 stays stopped (poison) → fix the cause"),
                                 Not(HasSubstr("Partition p00 resumes"))));
  EXPECT_EQ(stopped(), "4");
  EXPECT_THAT(outbox({"partitions", "adopt", "--all", "--yes"}).err,
              HasSubstr("No partition to adopt"));
}

TEST_F(Adopting, TakesEitherOnePartitionOrAll) {
  stop("broker_lost");
  EXPECT_THAT(outbox({"partitions", "adopt"}).err, HasSubstr("Pass PARTITION or --all"));
  EXPECT_THAT(outbox({"partitions", "adopt", "all", "--all"}).err,
              HasSubstr("Pass PARTITION or --all"));
  EXPECT_THAT(outbox({"partitions", "adopt", "--all", "--broker-sequence", "1"}).err,
              HasSubstr("--broker-sequence is of one partition"));
  EXPECT_EQ(stopped(), "1");
}

class BackingOff : public ToolOutbox {
 protected:
  void SetUp() override {
    ToolOutbox::SetUp();
    RawSqlite{db_}.run(
        "UPDATE outbox_partitions SET attempts = 3, next_attempt_at = (strftime('%s', 'now') + "
        "60) * 1000000, last_error = 'full; max_bytes of ''SHOP'' is 7', "
        "failure_class = 'stream_full'");
  }
  bool waits() const {
    return outbox({"partitions", "list", "--json"}).out.find("\"next_attempt_at\":\"20") !=
           std::string::npos;
  }
};

TEST_F(BackingOff, IsTriedAtOnceAsItIsAdvised) {
  const Ran checked = run({"check", "--db", db_});
  EXPECT_THAT(checked.out, AllOf(HasSubstr("max_bytes of 'SHOP' is 7"),
                                 HasSubstr("outbox partitions retry all'")));
  EXPECT_THAT(run({"check", "--db", db_, "--json"}).out,
              HasSubstr(R"("failure_class":"stream_full")"));

  const Ran dry = outbox({"partitions", "retry", "all", "--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.err, HasSubstr("Partition all would be tried now"));
  EXPECT_THAT(outbox({"partitions", "retry", "all", "--dry-run", "--json"}).out,
              HasSubstr(R"({"partition":"all","error":"full)"));
  EXPECT_TRUE(waits());

  const Ran retried = outbox({"partitions", "retry", "all"});
  EXPECT_EQ(retried.code, 0);
  EXPECT_THAT(retried.err, HasSubstr("Partition all is tried now; it backs off from: full"));
  EXPECT_FALSE(waits());
  EXPECT_THAT(run({"log", "--db", db_}).out, HasSubstr("partition all"));
}

TEST_F(BackingOff, IsTriedWithAllOthers) {
  EXPECT_EQ(outbox({"partitions", "retry", "--all"}).code, 0);
  EXPECT_FALSE(waits());
  RawSqlite{db_}.run("UPDATE outbox_partitions SET attempts = 0");
  const Ran none = outbox({"partitions", "retry", "--all"});
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.err, HasSubstr("No partition is backing off"));
}

class AdoptingAt : public Adopting {
 protected:
  void SetUp() override {
    Adopting::SetUp();
    ASSERT_EQ(at_broker({"work", "--until-empty", "--silent", "--ensure-stream"}).code, 0);
    stop("broker_lost");
  }
  Ran at_broker(std::vector<std::string> words) const {
    words.insert(words.end(), {"--nats", nats.url(), "--set", "nats.stream=SHOP"});
    return outbox(std::move(words));
  }
  Ran adopt_at(const std::string& number) const {
    return at_broker({"partitions", "adopt", "all", "--broker-sequence", number, "--yes"});
  }

  const NatsServer nats;
};

TEST_F(AdoptingAt, IsAdvisedBeforeAComparisonPromisesOrAsks) {
  JetStream{nats.url()}.erase("SHOP", 2);
  const std::string advice = "partition all is stopped because the broker lost messages";

  const Ran planned = at_broker({"reconcile", "--against-broker", "--dry-run"});
  EXPECT_EQ(planned.code, 0);
  EXPECT_THAT(planned.err, HasSubstr(advice));
  const Ran asked = at_broker({"reconcile", "--against-broker"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, HasSubstr(advice));

  ASSERT_EQ(outbox({"partitions", "adopt", "all", "--yes"}).code, 0);
  EXPECT_THAT(at_broker({"reconcile", "--against-broker", "--dry-run"}).err,
              Not(HasSubstr(advice)));
}

TEST_F(AdoptingAt, RefusesANumberThatTheBrokerDoesNotHave) {
  const Ran beyond = adopt_at("30");
  EXPECT_EQ(beyond.code, 1);
  EXPECT_THAT(beyond.err,
              HasSubstr("no message of partition all at 30 or after it; its last is 3"));

  JetStream{nats.url()}.erase("SHOP", 1);
  JetStream{nats.url()}.erase("SHOP", 2);
  const Ran before = adopt_at("1");
  EXPECT_EQ(before.code, 1);
  EXPECT_THAT(before.err, HasSubstr("the broker's stream begins at 3"));
  EXPECT_EQ(stopped(), "1");

  const Ran right = adopt_at("3");
  EXPECT_EQ(right.code, 0);
  EXPECT_THAT(right.err, Not(HasSubstr("checked")));
  EXPECT_EQ(stopped(), "0");
}

TEST_F(AdoptingAt, SaysWhenTheNumberIsNotChecked) {
  const std::vector<std::string> adopt{"partitions",        "adopt", "all", "--yes",
                                       "--broker-sequence", "30"};
  EXPECT_THAT(outbox(adopt).err, HasSubstr("30 isn't checked: pass --nats URL"));
  stop("broker_lost");

  std::vector<std::string> elsewhere = adopt;
  elsewhere.insert(elsewhere.end(), {"--nats", "nats://127.0.0.1:1"});
  EXPECT_THAT(outbox(elsewhere).err, HasSubstr("30 isn't checked: "));
  EXPECT_EQ(stopped(), "0");
}

TEST_F(AdoptingAt, NeedsNoBrokerWithoutANumber) {
  const Ran ran = at_broker({"partitions", "adopt", "all", "--yes"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--nats is for --broker-sequence and --dry-run"));
}

TEST_F(AdoptingAt, ShowsFirstWhatWouldBeMarkedPassedOverAndMissing) {
  const std::vector<std::string> preview{"partitions", "adopt", "all", "--dry-run"};
  EXPECT_EQ(at_broker(preview).out,
            "Partition all would continue after 3; it knows of 3. After that, 0 messages of this "
            "database would be marked, and 0 others passed over.\n");

  RawSqlite{db_}.run("UPDATE outbox_partitions SET broker_sequence = 1");
  EXPECT_THAT(at_broker(preview).out, HasSubstr("After that, 2 messages of this database"));

  RawSqlite{db_}.run("UPDATE outbox_partitions SET broker_sequence = 8, published_through = 8");
  EXPECT_THAT(
      at_broker(preview).out,
      HasSubstr("What was published after broker sequence 3 is missing there: 'stela outbox "
                "republish --from 4 --to 8 --partition all --dry-run' counts it."));

  std::vector<std::string> json = preview;
  json.emplace_back("--json");
  EXPECT_EQ(at_broker(json).out,
            "{\"partition\":\"all\",\"known\":8,\"last\":3,\"ours\":0,\"others\":0,"
            "\"has_more\":false,\"dry_run\":true}\n");
  EXPECT_EQ(stopped(), "1");
}

TEST_F(AdoptingAt, NeedsABrokerForAPreview) {
  const Ran ran = outbox({"partitions", "adopt", "all", "--dry-run"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("a dry run asks the broker: pass --nats URL"));
}

/// The stream has all that was published, and more than the restored database knows of.
TEST_F(AdoptingAt, ContinuesARestoredDatabase) {
  RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = NULL");
  const std::string backup = dir_.file("backup.db");
  run_well({"backup", "--db", db_, backup});
  run_well({"events", "append", "--db", db_, "--stream", "order-4", "--type", "order.placed",
            "--publish", "--data", "{}"});
  ASSERT_EQ(at_broker({"work", "--until-empty", "--silent"}).code, 0);
  db_ = backup;
  at_broker({"work", "--until-empty", "--silent"});
  ASSERT_THAT(outbox({"status"}).out, HasSubstr("store_went_back"));
  ASSERT_THAT(at_broker({"reconcile", "--against-broker", "--dry-run"}).out,
              HasSubstr("None is missing"));

  EXPECT_EQ(outbox({"partitions", "adopt", "all", "--yes"}).err, "Partition all resumes.\n");

  ASSERT_EQ(at_broker({"work", "--until-empty", "--silent"}).code, 0);
  EXPECT_EQ(stopped(), "0");
}

/// What was appended after a backup is at the broker alone: order-4 twice, with a local event
/// between, and order-5.
class Importing : public AdoptingAt {
 protected:
  void SetUp() override {
    AdoptingAt::SetUp();
    RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = NULL");
    const std::string backup = dir_.file("backup.db");
    run_well({"backup", "--db", db_, backup});
    for (const char* const stream : {"order-4", "order-5"}) append(stream, {"--publish"});
    append("order-4");
    append("order-4", {"--publish"});
    ASSERT_EQ(at_broker({"work", "--until-empty", "--silent"}).code, 0);
    db_ = backup;
  }
  void append(const std::string& stream, const std::vector<std::string>& how = {}) const {
    std::vector<std::string> words{"events", "append", "--db",         db_,      "--stream",
                                   stream,   "--type", "order.placed", "--data", "{}"};
    words.insert(words.end(), how.begin(), how.end());
    run_well(words);
  }
};

TEST_F(Importing, ShowsFirstWhatOnlyTheBrokerHasAndWhatFits) {
  const Ran planned = at_broker({"reconcile", "--from-broker", "--dry-run"});
  EXPECT_EQ(planned.code, 0);
  EXPECT_THAT(planned.out,
              AllOf(HasSubstr("order-4        1  fits "), HasSubstr("SHOP #4 "),
                    HasSubstr("order-4        3  gap "), HasSubstr("version 2 wasn't published"),
                    HasSubstr("Only the broker has 3 events, of which 2 fit.")));

  const auto lines = lines_of(at_broker({"reconcile", "--from-broker", "--dry-run", "--json"}).out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr(R"({"stream":"order-4","stream_version":1,"type":"order.placed",)"),
                    HasSubstr(R"("broker_stream":"SHOP","broker_sequence":4,)"),
                    HasSubstr(R"("fit":"fits")")));
  EXPECT_EQ(member(lines[1], "fit"), "gap");

  const Ran asked = at_broker({"reconcile", "--from-broker"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, AllOf(HasSubstr("of which 2 fit. Import what fits?"), HasSubstr("--yes")));
  EXPECT_EQ(run_well({"streams", "list", "--db", db_}).find("order-4"), std::string::npos);
}

TEST_F(Importing, BringsBackWhatFitsOnce) {
  at_broker({"work", "--until-empty", "--silent"});
  ASSERT_THAT(outbox({"status"}).out, HasSubstr("store_went_back"));

  EXPECT_EQ(at_broker({"reconcile", "--from-broker", "--yes"}).out,
            "2 events of 2 streams imported.\n");
  EXPECT_EQ(at_broker({"reconcile", "--from-broker", "--yes"}).out,
            "Only the broker has 1 event, of which 0 fit.\n");
  ASSERT_EQ(outbox({"partitions", "adopt", "all", "--yes"}).code, 0);
  ASSERT_EQ(at_broker({"work", "--until-empty", "--silent"}).code, 0);

  EXPECT_EQ(JetStream{nats.url()}.count("SHOP"), 6);
  EXPECT_THAT(run_well({"verify", "--db", db_}), HasSubstr("5 events checked, no problem"));
  EXPECT_THAT(at_broker({"reconcile", "--against-broker", "--dry-run"}).out,
              AllOf(HasSubstr("None is missing"), HasSubstr("1 message at the broker")));
  EXPECT_THAT(run_well({"log", "--db", db_}), HasSubstr("2 messages, 4 to 5, from the broker"));
}

TEST_F(Importing, GoesWithNoOtherComparison) {
  EXPECT_THAT(at_broker({"reconcile", "--from-broker", "--against-broker"}).err,
              HasSubstr("--from-broker goes neither with --against-broker nor with --from"));
  EXPECT_THAT(at_broker({"reconcile"}).err,
              HasSubstr("--nats is for --against-broker and --from-broker"));
}

}  // namespace
}  // namespace stela::test::adopt_test
