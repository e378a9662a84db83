// The commands that show an outbox, and those that change it.
#include "database/database.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>

namespace stela::test::outbox_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(ToolOutbox, StatusCountsAndAdvises) {
  park(2);
  const Ran seen = outbox({"status"});
  EXPECT_EQ(seen.code, 0);
  EXPECT_THAT(seen.out, HasSubstr("pending    2"));
  EXPECT_THAT(seen.out, HasSubstr("outbox list --state parked"));
  EXPECT_THAT(seen.out, HasSubstr("there is no live worker"));
  const std::string json = outbox({"status", "--json"}).out;
  EXPECT_EQ(member(json, "pending"), "2");
  EXPECT_EQ(member(json, "parked"), "1");
}

TEST_F(ToolOutbox, ListsByStateWithoutAnEscapeFromData) {
  park(2);
  const Ran all = outbox({"list", "--json"});
  EXPECT_THAT(lines_of(all.out), SizeIs(3));
  const Ran parked = outbox({"list", "--state", "parked"});
  EXPECT_THAT(parked.out, HasSubstr("too large \\x1b[31m"));
  EXPECT_EQ(parked.out.find('\x1b'), std::string::npos);
  EXPECT_THAT(outbox({"show", "2"}).out, HasSubstr("reason       refused"));
  EXPECT_EQ(outbox({"show", "99"}).code, 3);
  EXPECT_THAT(outbox({"list", "--state", "praked"}).err, HasSubstr("Did you mean 'parked'?"));
  const Ran elsewhere = outbox({"list", "--partition", "p99"});
  EXPECT_EQ(elsewhere.code, 3);
  EXPECT_THAT(elsewhere.err, HasSubstr("there is no partition p99"));
}

TEST_F(ToolOutbox, RetriesOnlySelectedMessages) {
  park(1);
  park(2);
  EXPECT_EQ(member(outbox({"retry", "--all", "--dry-run", "--json"}).out, "messages"), "2");
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "parked"), "2");
  EXPECT_EQ(member(outbox({"retry", "2", "--json"}).out, "messages"), "1");
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "parked"), "1");
  EXPECT_EQ(outbox({"retry", "2"}).code, 3);
  EXPECT_EQ(outbox({"retry"}).code, 2);
  EXPECT_EQ(outbox({"retry", "1", "--all"}).code, 2);
}

TEST_F(ToolOutbox, DiscardAsksFirst) {
  park(2);
  const Ran unasked = outbox({"discard", "2"});
  EXPECT_EQ(unasked.code, 2);
  EXPECT_THAT(unasked.err, HasSubstr("--yes"));
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "parked"), "1");
  EXPECT_EQ(outbox({"discard", "2", "--yes"}).code, 0);
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "discarded"), "1");
}

TEST_F(ToolOutbox, ResizesAndSyncs) {
  EXPECT_THAT(outbox({"partitions", "resize", "16", "--dry-run"}).out, HasSubstr("from 1 to 16"));
  EXPECT_EQ(member(outbox({"partitions", "resize", "16", "--dry-run", "--json"}).out, "before"),
            "1");
  const Ran resized = outbox({"partitions", "resize", "16", "--json"});
  EXPECT_EQ(member(resized.out, "after"), "16");
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "partition_count"), "16");
  EXPECT_THAT(outbox({"partitions", "list"}).out, HasSubstr("p15"));
  EXPECT_THAT(outbox({"partitions", "sync", "--prune", "--dry-run"}).out,
              HasSubstr("No partitions are missing."));
  EXPECT_EQ(outbox({"partitions", "resize", "0"}).code, 2);
  EXPECT_EQ(outbox({"partitions", "resize", "99999999999"}).code, 2);
}

TEST_F(ToolOutbox, RepublishesFromTheFirstEventOn) {
  EXPECT_EQ(outbox({"republish", "--from", "1", "--yes"}).code, 0);
}

TEST_F(ToolOutbox, RepublishSaysHowItContinuesAfterAnInterruption) {
  std::string lines;
  for (int i = 0; i < 2'000; ++i) {
    lines += R"({"stream":"order-9","type":"order.placed","publish":true,"data":{}})"
             "\n";
  }
  ASSERT_EQ(run({"events", "append", "--stdin", "--db", db_}, {.input = lines}).code, 0);
  RawSqlite raw{db_};
  raw.run("DELETE FROM outbox_messages");
  raw.run("UPDATE outbox_partitions SET published = 2003, published_through = 2003");
  raw.run(
      "CREATE VIEW slow AS WITH RECURSIVE n(i) AS "
      "(VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 500000) SELECT max(i) AS most FROM n");
  raw.run(
      "CREATE TRIGGER slows_down BEFORE INSERT ON outbox_redeliveries WHEN NEW.sequence % 500 = 0 "
      "BEGIN SELECT most FROM slow; END");
  const auto enqueued = [&] { return raw.integer("SELECT count(*) FROM outbox_redeliveries"); };

  Running republish{{"outbox", "republish", "--from", "1", "--yes", "--db", db_}};
  ASSERT_TRUE(eventually([&] { return enqueued() > 0; })) << republish.err();
  republish.signal(SIGINT);

  EXPECT_EQ(republish.wait(), 130) << republish.err();
  EXPECT_LT(enqueued(), 2'003);
  // A status message: it isn't part of what is asked for.
  EXPECT_THAT(republish.err(), AllOf(HasSubstr("Interrupted after "),
                                     HasSubstr(" of 2,003 messages; the same with --from " +
                                               std::to_string(enqueued() + 1) + " continues.")));
}

TEST_F(ToolOutbox, RepublishWantsBounds) {
  EXPECT_EQ(outbox({"republish"}).code, 2);
  const Ran turned = outbox({"republish", "--from", "3", "--to", "1", "--dry-run"});
  EXPECT_EQ(turned.code, 2);
  EXPECT_THAT(turned.err, HasSubstr("--from is after --to"));
  const Ran nobody = outbox({"republish", "--stream", "order-99", "--dry-run"});
  EXPECT_EQ(nobody.code, 3);
  EXPECT_THAT(nobody.err, HasSubstr("there is no stream 'order-99'"));
  const Ran none = outbox({"republish", "--to", "3", "--dry-run", "--json"});
  EXPECT_EQ(member(none.out, "messages"), "0") << none.err;
}

TEST_F(ToolOutbox, ReconcileFindsEventsWithoutAState) {
  RawSqlite{db_}.run("DELETE FROM outbox_messages WHERE sequence = 2");
  const std::string dry = outbox({"reconcile", "--dry-run", "--json"}).out;
  EXPECT_EQ(member(dry, "missing"), "1");
  EXPECT_THAT(dry, HasSubstr("\"examples\":[2]"));
  EXPECT_EQ(member(outbox({"reconcile", "--json"}).out, "missing"), "1");
  EXPECT_EQ(member(outbox({"reconcile", "--json"}).out, "missing"), "0");
}

TEST_F(ToolOutbox, ReconcileDrawsItsProgressOnATerminalOnly) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    lines += R"({"stream":"order-9","type":"order.placed","publish":true,"data":{}})"
             "\n";
  }
  ASSERT_EQ(run({"events", "append", "--stdin", "--db", db_}, {.input = lines}).code, 0);
  RawSqlite raw{db_};
  // Where it isn't drawn, nothing is told in the first five seconds: the whole takes longer on any
  // machine.
  raw.run(
      "CREATE VIEW slow AS WITH RECURSIVE n(i) AS "
      "(VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 4000000) SELECT max(i) AS most FROM n");
  raw.run(
      "CREATE TRIGGER slows_down BEFORE INSERT ON outbox_redeliveries WHEN NEW.sequence % 500 = 0 "
      "BEGIN SELECT most FROM slow; END");
  raw.run("DELETE FROM outbox_messages");
  // Until it tells how far it is; it is ended then.
  const auto seen = [&](bool in_terminal) {
    raw.run("DELETE FROM outbox_redeliveries");
    Running reconcile{{"outbox", "reconcile", "--db", db_}, {.in_terminal = in_terminal}};
    EXPECT_TRUE(eventually([&] {
      return reconcile.err().find("of 20,003 events") != std::string::npos;
    })) << reconcile.err();
    return reconcile.err();
  };

  EXPECT_THAT(seen(true), HasSubstr("\r\x1b[K["));
  const std::string piped = seen(false);
  EXPECT_THAT(piped, StartsWith("reconcile "));
  EXPECT_THAT(piped, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\x1b"))));
}

TEST_F(ToolOutbox, ReconcilesWithNoStreamOfAWrongName) {
  const NatsServer nats;
  const auto with_stream = [&](const std::string& name, std::vector<std::string> words) {
    words.insert(words.end(),
                 {"--nats", nats.url(), "--stream", name, "--set", "nats.ensure_stream=true"});
    return outbox(std::move(words));
  };
  ASSERT_EQ(with_stream("SHOP", {"work", "--until-empty", "--silent"}).code, 0);

  const Ran typo = with_stream("SHOPP", {"reconcile", "--against-broker", "--yes"});

  EXPECT_EQ(typo.code, 1);
  EXPECT_THAT(typo.err, HasSubstr("there is no JetStream stream 'SHOPP'"));
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "redeliveries"), "0");
  EXPECT_EQ(with_stream("SHOP", {"reconcile", "--against-broker", "--yes"}).code, 0);
}

/// A worker stops the partition once it has looked again at what the broker lost.
class AfterALoss : public ToolOutbox {
 protected:
  void relay_until_stopped(const NatsServer& nats) {
    Running worker{{"outbox", "work", "--db", db_, "--nats", nats.url(), "--stream", "SHOP",
                    "--ensure-stream", "--silent", "--set", "outbox.publish_timeout=1s", "--set",
                    "outbox.retry_backoff=100ms"}};
    EXPECT_TRUE(eventually([&] {
      return outbox({"status"}).out.find("stopped: broker_lost") != std::string::npos;
    })) << worker.err();
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0);
  }
};

TEST_F(AfterALoss, ReconcilesWithABrokerThatForgot) {
  auto nats = std::make_optional<NatsServer>();
  const auto with_broker = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--nats", nats->url(), "--stream", "SHOP"});
    return outbox(std::move(words));
  };
  ASSERT_EQ(with_broker({"work", "--until-empty", "--ensure-stream", "--silent"}).code, 0);
  const Ran fine = with_broker({"reconcile", "--against-broker"});
  EXPECT_EQ(fine.out,
            "3 published events compared with 3 messages at the broker.\nNone is missing.\n");

  // A new server, with none of what the old one acknowledged.
  nats.emplace();
  const Ran nothing = with_broker({"reconcile", "--against-broker"});
  EXPECT_EQ(nothing.code, 4);
  EXPECT_THAT(nothing.err, HasSubstr("'SHOP'"));
  relay_until_stopped(*nats);
  EXPECT_THAT(outbox({"status"}).out, HasSubstr("broker_lost"));

  const std::string dry = with_broker({"reconcile", "--against-broker", "--dry-run", "--json"}).out;
  EXPECT_EQ(member(dry, "missing"), "3");
  EXPECT_EQ(member(dry, "found"), "0");
  EXPECT_THAT(dry, HasSubstr("\"examples\":[1,2,3]"));
  const Ran too_early = with_broker({"reconcile", "--against-broker", "--yes"});
  EXPECT_EQ(too_early.code, 2);
  EXPECT_THAT(too_early.err, HasSubstr("adopt it before they are published again: "));
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "redeliveries"), "0");
  EXPECT_EQ(outbox({"partitions", "adopt", "all", "--yes"}).code, 0);
  EXPECT_THAT(with_broker({"reconcile", "--against-broker", "--yes"}).err,
              HasSubstr("no worker has looked at the broker since"));
  ASSERT_EQ(with_broker({"work", "--until-empty", "--silent"}).code, 0);
  const Ran unasked = with_broker({"reconcile", "--against-broker"});
  EXPECT_EQ(unasked.code, 2);
  EXPECT_THAT(unasked.err, HasSubstr("--yes"));
  EXPECT_THAT(with_broker({"reconcile", "--against-broker", "--yes"}).out,
              HasSubstr("3 are missing at the broker and will be published again: 1, 2, 3\n"));
  ASSERT_EQ(with_broker({"work", "--until-empty", "--silent"}).code, 0);
  EXPECT_EQ(member(with_broker({"reconcile", "--against-broker", "--json"}).out, "found"), "3");
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "redeliveries"), "0");
}

TEST_F(ToolOutbox, ReachesABrokerInAnotherJetStreamDomain) {
  const NatsServer nats{"jetstream { store_dir: \"@\", domain: hub }"};
  const auto in_domain = [&](const std::string& domain, std::vector<std::string> words) {
    words.insert(words.end(), {"--nats", nats.url(), "--stream", "SHOP", "--set",
                               "nats.domain=" + domain, "--set", "nats.connect_timeout=1s"});
    return outbox(std::move(words));
  };
  const Ran elsewhere = in_domain("leaf", {"work", "--once", "--ensure-stream"});
  EXPECT_THAT(elsewhere.err, HasSubstr("$JS.leaf.API.STREAM.INFO.SHOP"));
  ASSERT_EQ(in_domain("hub", {"work", "--until-empty", "--ensure-stream", "--silent"}).code, 0);

  EXPECT_EQ(in_domain("leaf", {"reconcile", "--against-broker"}).code, 4);
  EXPECT_EQ(in_domain("hub", {"reconcile", "--against-broker"}).out,
            "3 published events compared with 3 messages at the broker.\nNone is missing.\n");
}

TEST_F(AfterALoss, NamesTwoAnswersWithTheirRange) {
  auto nats = std::make_optional<NatsServer>();
  const auto with_broker = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--nats", nats->url(), "--stream", "SHOP"});
    return outbox(std::move(words));
  };
  ASSERT_EQ(with_broker({"work", "--until-empty", "--ensure-stream", "--silent"}).code, 0);
  nats.emplace();
  relay_until_stopped(*nats);
  const std::string seen = outbox({"status"}).out;
  EXPECT_THAT(seen, HasSubstr("'stela outbox partitions adopt all' continues without it"));
  EXPECT_THAT(seen,
              HasSubstr("'stela outbox republish --from 1 --to 3 --partition all' sends it again"));

  EXPECT_EQ(outbox({"partitions", "adopt", "all", "--yes"}).code, 0);
  ASSERT_EQ(with_broker({"work", "--until-empty", "--silent"}).code, 0);
  EXPECT_EQ(outbox({"check"}).code, 0);
  const std::vector<std::string> republish{"republish", "--from",      "1",   "--to",
                                           "3",         "--partition", "all", "--yes"};
  EXPECT_EQ(outbox(republish).out, "3 messages of 3 streams will be published again.\n");
  ASSERT_EQ(with_broker({"work", "--until-empty", "--silent"}).code, 0);
  EXPECT_EQ(member(with_broker({"reconcile", "--against-broker", "--json"}).out, "found"), "3");
}

TEST_F(ToolOutbox, AdvisesOfAMessageThatIsParkedBehindAnother) {
  run_well({"events", "append", "--db", db_, "--stream", "order-2", "--type", "order.shipped",
            "--publish", "--data", "{}"});
  park(2);
  park(4);
  EXPECT_THAT(outbox({"show", "2"}).out, HasSubstr("outbox retry 2' retries it; '"));
  EXPECT_THAT(outbox({"show", "4"}).out, HasSubstr("outbox retry --stream order-2' retries it, "
                                                   "with the messages parked before it"));
  EXPECT_EQ(outbox({"retry", "4"}).code, 2);
  EXPECT_EQ(outbox({"retry", "--stream", "order-2"}).code, 0);
}

TEST_F(ToolOutbox, SendsMessagesParkedBehindADiscardedOne) {
  run_well({"events", "append", "--db", db_, "--stream", "order-2", "--type", "order.shipped",
            "--publish", "--data", "{}"});
  park(2);
  park(4);
  RawSqlite{db_}.run("UPDATE outbox_parked SET reason = 'behind' WHERE sequence = 4");
  for (const std::string& seen : {outbox({"status"}).out, run({"doctor", "--db", db_}).out}) {
    EXPECT_THAT(seen,
                HasSubstr("outbox discard SEQUENCE' for messages that can never be published"));
    EXPECT_THAT(seen, Not(HasSubstr("discard --all")));
  }
  EXPECT_EQ(outbox({"discard", "2", "--dry-run"}).out,
            "1 message of 1 stream would be discarded.\n"
            "1 message parked after it in its stream would be retried.\n");
  EXPECT_THAT(outbox({"discard", "2"}).err,
              HasSubstr("1 message parked after it in its stream will be retried"));
  EXPECT_EQ(outbox({"discard", "2", "--yes"}).out,
            "1 message of 1 stream discarded.\n1 message parked after it in its stream will be "
            "retried.\n");
  const std::string status = outbox({"status", "--json"}).out;
  EXPECT_EQ(member(status, "parked"), "0");
  EXPECT_EQ(member(status, "redeliveries"), "1");
}

TEST_F(ToolOutbox, RetriesMessagesThatAreParkedBehindNothingAsVerifySays) {
  for (const std::string stream : {"order-2", "order-1"}) {
    run_well({"events", "append", "--db", db_, "--stream", stream, "--type", "order.shipped",
              "--publish", "--data", "{}"});
  }
  park(2);
  park(4);
  RawSqlite{db_}.run("UPDATE outbox_parked SET reason = 'behind'");
  const Ran verified = run({"verify", "--db", db_});
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.out, HasSubstr("run outbox retry 2,"));
  EXPECT_THAT(outbox({"show", "2"}).out,
              HasSubstr("outbox retry 2' retries it, with the messages parked behind it; '"));

  EXPECT_EQ(outbox({"retry", "2"}).out, "2 messages of 1 stream will be retried.\n");

  EXPECT_EQ(run({"verify", "--db", db_}).code, 0);
}

TEST_F(ToolOutbox, AdvisesToStopAForeignWriterFirst) {
  RawSqlite{db_}.run(
      "UPDATE outbox_partitions SET stopped = 'foreign_writer', stopped_detail = ''");
  EXPECT_THAT(outbox({"status"}).out,
              HasSubstr("find the other program that writes to this stream"));
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("only then 'stela outbox partitions adopt all'"));
}

TEST_F(ToolOutbox, TakesNoBrokerToReconcileWithoutOne) {
  const Ran ran = outbox({"reconcile", "--stream", "SHOP"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--stream is for --against-broker"));
}

TEST_F(ToolOutbox, AdvisesToSyncWhereAPartitionIsGone) {
  RawSqlite{db_}.run("DELETE FROM outbox_partitions");
  EXPECT_THAT(outbox({"status"}).out, HasSubstr("outbox partitions sync'"));
  EXPECT_THAT(outbox({"check"}).out, HasSubstr("CRITICAL: partition all is stopped (unknown)"));
}

TEST_F(ToolOutbox, AdvisesACopyToTakeAStreamOfItsOwn) {
  RawSqlite{db_}.run(
      "UPDATE outbox_partitions SET stopped = 'store_went_back', stopped_detail = ''");
  const Ran asked = outbox({"partitions", "adopt", "all"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, HasSubstr("If this is a copy of a database that is still in use"));
  for (const std::string& seen : {outbox({"status"}).out, run({"doctor", "--db", db_}).out}) {
    EXPECT_THAT(seen,
                HasSubstr("first give it its own stream and prefix (nats.stream, nats.prefix)"));
    EXPECT_THAT(seen, HasSubstr("its consumers other names"));
    EXPECT_THAT(seen, HasSubstr("outbox reconcile --from-broker --dry-run'"));
    EXPECT_THAT(seen, HasSubstr("then '"));
  }
}

TEST_F(ToolOutbox, TellsASilentWorkerFromADeadOne) {
  const Store store = open(db_);
  const auto running = store.database().appear();
  const std::string ended = std::to_string(store.database().appear()->number());
  RawSqlite{db_}.run(
      "INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off) VALUES ('full', 'h', 1, " +
      std::to_string(running->number()) +
      ", 0, 1, 60000000, 'connected', 0, 0), ('gone', 'h', 2, " + ended +
      ", 0, 1, 60000000, 'connected', 0, 0), ('far', 'elsewhere', 1, -1, 0, 1, 60000000, "
      "'connected', 0, 0)");
  const std::string seen = outbox({"workers"}).out;
  EXPECT_THAT(seen, HasSubstr("silent, its process is running"));
  EXPECT_THAT(seen, HasSubstr("no, its process has ended"));
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("check' says whether the database can be written to"));
}

TEST_F(ToolOutbox, TellsOfWorkersThatAreCutOffFromTheirBroker) {
  RawSqlite raw{db_};
  raw.run(
      "INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off)"
      " VALUES ('here', 'h', 1, -1, 0, (unixepoch() + 60) * 1000000, 60000000, 'connected', 0, 0),"
      " ('away', 'h', 2, -1, 0, (unixepoch() + 60) * 1000000, 60000000, 'down: no server answers', "
      "0, 1)");
  EXPECT_THAT(outbox({"workers"}).out,
              AllOf(HasSubstr("connected"), HasSubstr("down: no server answers")));
  EXPECT_EQ(outbox({"check"}).out,
            "WARNING: worker 'away' is cut off from its broker: down: no server answers\n");

  raw.run("UPDATE outbox_workers SET is_cut_off = 1");
  EXPECT_THAT(outbox({"check"}).out,
              HasSubstr("CRITICAL: 3 messages are pending, and no worker reaches its broker"));
  raw.run("UPDATE outbox_workers SET broker = 'down: no server answers'");
  EXPECT_THAT(
      run({"doctor", "--db", db_}).out,
      HasSubstr(
          "critical outbox_cut_off: 3 messages are pending, and no worker reaches its broker: "
          "down: no server answers"));
  EXPECT_THAT(outbox({"status"}).out,
              HasSubstr("3 messages are pending, and no worker reaches its broker"));
}

TEST_F(ToolOutbox, TellsOfABrokerThatIsNotSetUp) {
  RawSqlite{db_}.run(
      "INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off)"
      " VALUES ('w', 'h', 1, -1, 0, (unixepoch() + 60) * 1000000, 60000000, 'misconfigured: there "
      "is no JetStream stream', 0, 0)");
  EXPECT_EQ(outbox({"check"}).out,
            "WARNING: worker 'w' can't publish everything: misconfigured: there is no JetStream "
            "stream\n");
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("warning  worker_misconfigured: worker 'w' can't publish everything"));
}

TEST_F(ToolOutbox, CountsTheLagOfRedeliveriesFromTheirRequest) {
  RawSqlite raw{db_};
  for (int sequence = 1; sequence <= 3; ++sequence) park(sequence);
  ASSERT_EQ(outbox({"retry", "--all"}).code, 0);
  raw.run("UPDATE outbox_redeliveries SET requested_at = 1");
  EXPECT_THAT(outbox({"check", "--min-workers", "0"}).out,
              StartsWith("CRITICAL: the oldest message has been pending for "));
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("critical outbox_late: the oldest message has"));
  EXPECT_THAT(outbox({"status"}).out, Not(HasSubstr("lag        none")));
}

TEST_F(ToolOutbox, CountsMessagesInFlightOnce) {
  RawSqlite{db_}.run(
      "UPDATE outbox_partitions SET owner = 'w', lease_until = 4102444800000000, "
      "lease_ttl = 4102444800000000, flight_count = 2");
  EXPECT_EQ(member(outbox({"status", "--json"}).out, "in_flight"), "2");
  EXPECT_EQ(outbox({"check", "--min-workers", "0", "--max-pending", "2"}).out,
            "CRITICAL: pending is 3, more than 2\n");
}

TEST_F(ToolOutbox, PurgeKeepsYoungEntries) {
  EXPECT_EQ(member(outbox({"purge", "--older-than", "7d", "--yes", "--json"}).out, "batches"), "0");
}

TEST(ToolOutboxEnable, HistoryMustBeDecidedAbout) {
  const TempDir dir = TempDir::in_memory();
  const std::string db = dir.file("shop.db");
  run_well({"migrate", "--db", db});
  EXPECT_THAT(run({"outbox", "status", "--db", db}).err, HasSubstr("outbox enable"));
  run_well({"events", "append", "--db", db, "--stream", "order-1", "--type", "order.placed",
            "--publish", "--data", "{}"});
  const Ran undecided = run({"outbox", "enable", "--db", db});
  EXPECT_EQ(undecided.code, 2);
  EXPECT_THAT(undecided.err,
              HasSubstr("(--backfill) publishes them, Enable::from_now (--from-now)"));
  EXPECT_EQ(run({"outbox", "enable", "--db", db, "--backfill", "--from-now"}).code, 2);
  const std::string seen = run_well({"outbox", "enable", "--db", db, "--backfill", "--json"});
  EXPECT_EQ(member(seen, "pending"), "1");
}

TEST_F(ToolOutbox, IsImportedWithAllOfItsLinesOrNotAtAll) {
  const std::string whole = run_well({"export", "--whole", "--db", db_});
  std::string partial = whole;
  const std::size_t at = partial.find("{\"state\":\"outbox_messages\"");
  partial.erase(at, partial.find('\n', at) + 1 - at);
  const std::string copy = dir_.file("copy.db");
  run_well({"migrate", "--db", copy});

  const Ran refused = run({"import", "--db", copy}, {.input = partial});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(" lines of states, and "));
  EXPECT_THAT(refused.err, HasSubstr("export again and import that"));
  EXPECT_EQ(run({"outbox", "status", "--db", copy}).code, 3);

  run_well({"import", "--db", copy}, {.input = whole});
  EXPECT_EQ(member(run_well({"outbox", "status", "--db", copy, "--json"}), "pending"), "3");
}

TEST_F(ToolOutbox, IsNotImportedFromADamagedFileHoweverOften) {
  std::string damaged = run_well({"export", "--whole", "--db", db_});
  const std::size_t last = damaged.rfind("{\"sequence\":");
  damaged.erase(last, damaged.find('\n', last) + 1 - last);
  const std::string copy = dir_.file("copy.db");
  run_well({"migrate", "--db", copy});

  const Ran refused = run({"import", "--db", copy}, {.input = damaged});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the file is damaged: take another export"));
  EXPECT_EQ(run({"import", "--db", copy}, {.input = damaged}).err, refused.err);

  run_well({"import", "--db", copy}, {.input = run_well({"export", "--whole", "--db", db_})});
  EXPECT_EQ(member(run_well({"outbox", "status", "--db", copy, "--json"}), "pending"), "3");
}

TEST_F(ToolOutbox, IsImportedFromAnExportThatDoesNotCountItsLines) {
  std::string whole = run_well({"export", "--whole", "--db", db_});
  const std::size_t at = whole.rfind(",\"rows\":");
  ASSERT_NE(at, std::string::npos);
  whole.erase(at, whole.find('}', at) - at);
  const std::string copy = dir_.file("copy.db");
  run_well({"migrate", "--db", copy});

  run_well({"import", "--db", copy}, {.input = whole});

  EXPECT_EQ(member(run_well({"outbox", "status", "--db", copy, "--json"}), "pending"), "3");
}

}  // namespace
}  // namespace stela::test::outbox_test
