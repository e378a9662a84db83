// What is wrong with a store, from the facts to the sentence, and why.
#include "diagnosis/chain.hpp"
#include "diagnosis/diagnose.hpp"
#include "support/nats_server.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>

namespace stela::tool::diagnosis_test {
namespace {

using namespace std::chrono_literals;
using test::Ran;
using test::RawSqlite;
using test::run;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Timestamp now{std::chrono::microseconds{1'700'000'000'000'000}};
constexpr const char* hostile = "evil\x1b[2J\x07\nname";

Facts with_partition(const std::function<void(PartitionStatus&)>& change) {
  PartitionStatus partition{.id = PartitionId::at(3, 4), .last_error = hostile};
  change(partition);
  OutboxStatus status{.at = now, .partition_count = 4, .partitions = {partition}};
  return {.at = now, .outbox = status};
}

Facts with_stop(StopReason reason) {
  return with_partition([&](PartitionStatus& partition) {
    partition.stopped = reason;
    partition.stopped_detail = hostile;
  });
}

/// All is published but for what the answer says.
Facts with_stream(const Answer& answer) {
  Facts facts = with_partition([](auto& one) { one.broker_sequence = 7; });
  facts.broker = {.url = "nats://there",
                  .connected = Answer{.kind = Answer::Kind::connected},
                  .streams = {{PartitionId::at(3, 4), answer}}};
  return facts;
}

Facts with_worker(const WorkerStatus& worker, std::int64_t pending = 0) {
  PartitionStatus partition{.id = PartitionId::at(3, 4), .pending = pending};
  OutboxStatus status{.at = now, .partitions = {partition}, .workers = {worker}};
  status.pending = pending;
  return {.at = now, .outbox = status};
}

Facts with_projector(const std::function<void(ProjectorStatus&)>& change) {
  ProjectorStatus projector{.name = "totals", .owner = "r1", .lease_until = now + 30s};
  change(projector);
  return {.at = now, .projectors = {projector}};
}

Facts with_process(const ProcessStatus& process) {
  return {.at = now, .processes = {process}};
}

Facts with_reader(const nats::ReaderStatus& reader) {
  return {.at = now, .consumers = {{.consumer = "billing", .readers = {reader}}}};
}

/// Five messages wait for the only worker, which is cut off.
Facts with_worker_cut_off() {
  return with_worker({.name = "w1",
                      .is_alive = true,
                      .broker = BrokerStatus{.state = BrokerState::down, .detail = "no route"},
                      .is_cut_off = true},
                     5);
}

/// The first code that the facts must lead to, and what makes them.
struct Case {
  Code code;
  Facts facts;
};

std::vector<Case> cases() {
  const BrokerStatus down{.state = BrokerState::down, .detail = hostile};
  const BrokerStatus unfit{.state = BrokerState::misconfigured, .detail = hostile};
  postgres::ServerStatus standby;
  standby.is_standby = true;
  postgres::ServerStatus held_open;
  held_open.transactions = {{hostile, 11min}};
  postgres::ServerStatus with_lock;
  with_lock.locks = {{"events", hostile, 3s}};
  postgres::ServerStatus with_late_standby;
  with_late_standby.standbys = {{.name = "db2", .state = "streaming", .lag = 2min}};
  OutboxStatus late{.at = now};
  late.lag = 2min;
  OutboxStatus parked{.at = now};
  parked.parked = 3;
  Facts unreached = with_partition([](auto&) {});
  unreached.broker = {.url = "nats://there", .connected = Answer{.detail = hostile}};
  const Answer stream{.kind = Answer::Kind::read_back, .first_sequence = 1, .last_sequence = 7};
  const auto stream_as = [&](auto change) {
    Answer changed = stream;
    change(changed);
    return with_stream(changed);
  };
  const nats::ReaderStatus reader{.consumer = "billing", .broker_stream = "SHOP", .owner = "c1"};
  const auto read_as = [&](auto change) {
    nats::ReaderStatus changed = reader;
    change(changed);
    return with_reader(changed);
  };
  return {
      {Code::database_down, {.at = now, .store_problem = hostile}},
      {Code::database_standby, {.at = now, .server = standby}},
      {Code::database_transaction, {.at = now, .server = held_open}},
      {Code::database_locked, {.at = now, .server = with_lock}},
      {Code::database_unanswered, {.at = now, .unanswered = {{"projectors", hostile}}}},
      {Code::standby_late, {.at = now, .server = with_late_standby}},
      {Code::outbox_unattended, with_worker({.name = "w0"}, 5)},
      {Code::outbox_cut_off,
       with_worker({.name = "w1", .is_alive = true, .broker = down, .is_cut_off = true}, 5)},
      {Code::outbox_late, {.at = now, .outbox = late}},
      {Code::outbox_parked, {.at = now, .outbox = parked}},
      {Code::worker_cut_off,
       with_worker({.name = "w1", .is_alive = true, .broker = down, .is_cut_off = true})},
      {Code::worker_misconfigured, with_worker({.name = "w1", .is_alive = true, .broker = unfit})},
      {Code::worker_silent, with_worker({.name = "w1", .process = WorkerProcess::runs})},
      {Code::worker_ended,
       with_worker({.name = "w1", .process = WorkerProcess::ended, .partitions = 2})},
      {Code::partition_poison, with_stop(StopReason::poison)},
      {Code::partition_foreign_writer, with_stop(StopReason::foreign_writer)},
      {Code::partition_broker_lost, with_stop(StopReason::broker_lost)},
      {Code::partition_store_went_back, with_stop(StopReason::store_went_back)},
      {Code::partition_unreadable, with_stop(StopReason::unreadable)},
      {Code::partition_damaged, with_stop(StopReason::damaged)},
      {Code::partition_missing, with_stop(StopReason::missing)},
      {Code::partition_unrecognized, with_stop(StopReason::unrecognized)},
      {Code::partition_backing_off, with_partition([](auto& one) { one.attempts = 2; })},
      {Code::partition_unanswered, with_partition([](auto& one) { one.flight_age = 12s; })},
      {Code::partition_lease_expired,
       with_partition([](auto& one) { one.owner = "w1", one.lease_left = -3s; })},
      {Code::partition_uncompared,
       with_partition([](auto& one) { one.uncompared_since = now - 1min; })},
      {Code::broker_unreached, unreached},
      {Code::stream_unfit, with_stream({.kind = Answer::Kind::misconfigured, .detail = hostile})},
      {Code::stream_shorter, stream_as([](auto& one) { one.last_sequence = 6; })},
      {Code::stream_purged, stream_as([](auto& one) { one.first_sequence = 3; })},
      {Code::stream_nearly_full,
       stream_as([](auto& one) { one.fullness = 0.93, one.limit = "max_bytes"; })},
      {Code::projector_stopped,
       with_projector([](auto& one) { one.stopped = true, one.error = hostile; })},
      {Code::projector_unknown_version, with_projector([](auto& one) {
         one.failing = GlobalSequence{7}, one.owner = {}, one.error = hostile;
       })},
      {Code::projector_failing, with_projector([](auto& one) {
         one.failing = GlobalSequence{7}, one.attempts = 2, one.error = hostile;
       })},
      {Code::projector_unattended, with_projector([](auto& one) {
         one.lag_events = 2, one.lag = 3s, one.lease_until = now - 1s;
       })},
      {Code::projector_late, with_projector([](auto& one) { one.lag_events = 2, one.lag = 2min; })},
      {Code::projector_parked, with_projector([](auto& one) { one.parked = 2; })},
      {Code::timers_held,
       {.at = now, .holds = {{.reason = HoldReason::by_operator, .detail = hostile}}}},
      {Code::process_overdue, with_process({.name = "billing", .overdue = 2, .oldest_due = 2min})},
      {Code::process_parked, with_process({.name = "billing", .parked = 2})},
      {Code::process_unknown_timers, with_process({.name = "billing", .unknown = 2})},
      {Code::consumer_overdue, read_as([](auto& one) { one.is_overdue = true; })},
      {Code::consumer_unattended, read_as([](auto& one) { one.owner = {}; })},
      {Code::consumer_failing, read_as([](auto& one) { one.failing = 7, one.attempts = 2; })},
      {Code::consumer_unknown_version, read_as([](auto& one) { one.failing = 7; })},
      {Code::consumer_waiting, read_as([](auto& one) { one.is_waiting = true; })},
      {Code::consumer_standing, read_as([](auto& one) { one.error = hostile; })},
      {Code::consumer_paused, read_as([](auto& one) { one.is_paused = true; })},
      {Code::consumer_parked,
       {.at = now, .consumers = {{.consumer = "billing", .parked_messages = 2}}}},
      {Code::consumer_gaps, {.at = now, .consumers = {{.consumer = "billing", .gaps = 2}}}},
  };
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

TEST(Diagnosis, FindsEachCodeAndSaysWhatToDo) {
  for (const Case& one : cases()) {
    const std::string word{facts_of(one.code).word};
    const std::vector<Finding> findings = diagnose(one.facts);
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& each) { return each.code == one.code; });
    ASSERT_NE(found, findings.end()) << word;
    EXPECT_EQ(found->severity,
              facts_of(one.code).severity == Severity::critical && one.code == Code::timers_held
                  ? Severity::warning
                  : facts_of(one.code).severity)
        << word;
    EXPECT_THAT(found->sentence, HasSubstr(found->subject)) << word;
    EXPECT_FALSE(found->sentence.empty() || found->remedy.empty() || found->trouble.empty())
        << word;
    EXPECT_FALSE(has_control(found->sentence + found->remedy + found->trouble)) << word;
  }
}

/// A state of a message isn't something that is wrong with a store.
TEST(Diagnosis, HasACaseForEachCodeOfAStore) {
  std::set<Code> met;
  for (const Case& one : cases()) met.insert(one.code);
  for (const CodeFacts& facts : all_codes()) {
    if (facts.code >= Code::message_parked) break;
    EXPECT_TRUE(met.contains(facts.code)) << facts.word;
  }
}

TEST(Diagnosis, FindsNothingWhereNothingIsWrong) {
  EXPECT_THAT(diagnose({.at = now}), IsEmpty());
  const WorkerStatus worker{
      .name = "w1", .is_alive = true, .broker = BrokerStatus{BrokerState::connected}};
  EXPECT_THAT(diagnose(with_worker(worker, 5)), IsEmpty());
  EXPECT_THAT(diagnose(with_projector([](auto& one) { one.lag_events = 2, one.lag = 3s; })),
              IsEmpty());
}

TEST(Diagnosis, BeginsWithTheWorstAndNamesCauses) {
  Facts facts = with_worker_cut_off();
  facts.outbox->lag = 2min;
  const std::vector<Finding> findings = diagnose(facts);

  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].code, Code::outbox_cut_off);
  const Chain chain = chain_of_worst(findings);
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_EQ(chain[1].code, Code::worker_cut_off);
  const auto late = std::find_if(findings.begin(), findings.end(), [](const Finding& each) {
    return each.code == Code::outbox_late;
  });
  ASSERT_NE(late, findings.end());
  ASSERT_TRUE(late->caused_by);
  EXPECT_EQ(findings[*late->caused_by].code, Code::outbox_cut_off);
}

/// What an operator knows of is another problem once it has begun anew.
TEST(Diagnosis, KnowsNothingOfWhatBeganLater) {
  Facts facts = with_stop(StopReason::poison);
  facts.outbox->partitions.front().stopped_at = now - 1min;
  facts.acknowledged = {{.code = "partition_poison",
                         .subject = "p03",
                         .severity = "critical",
                         .why = "known",
                         .at = now - 30s,
                         .until = now + 1h}};
  EXPECT_EQ(worst_of(diagnose(facts)), Severity::fine);
  facts.outbox->partitions.front().stopped_at = now - 10s;
  EXPECT_EQ(worst_of(diagnose(facts)), Severity::critical);

  OutboxStatus parked{.at = now};
  parked.parked = 3;
  parked.last_parked_at = now - 1min;
  facts = {.at = now, .outbox = parked, .acknowledged = facts.acknowledged};
  facts.acknowledged.front().code = "outbox_parked";
  facts.acknowledged.front().subject = "";
  facts.acknowledged.front().severity = "warning";
  facts.acknowledged.front().amount = 6;
  EXPECT_EQ(worst_of(diagnose(facts)), Severity::fine);
  facts.outbox->last_parked_at = now;
  EXPECT_EQ(worst_of(diagnose(facts)), Severity::warning);
}

TEST(Diagnosis, BeginsAChainWithWhatSuffersMost) {
  Facts facts = with_worker_cut_off();
  facts.broker = {.url = "nats://there", .connected = Answer{.detail = "no route"}};
  const Chain chain = chain_of_worst(diagnose(facts));

  ASSERT_EQ(chain.size(), 3U);
  EXPECT_EQ(chain[0].code, Code::outbox_cut_off);
  EXPECT_EQ(chain[1].code, Code::worker_cut_off);
  EXPECT_EQ(chain[2].code, Code::broker_unreached);
}

/// Migrations lock tables, too.
TEST(Diagnosis, FindsNoLockThatIsYoung) {
  postgres::ServerStatus server;
  server.locks = {{"events", "session 4711 of app (psql)", 1s}};
  EXPECT_THAT(diagnose({.at = now, .server = server}), IsEmpty());
  // Unless something waits for it.
  const std::vector<Finding> findings =
      diagnose({.at = now, .unanswered = {{"events", "no answer"}}, .server = server});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0].sentence, HasSubstr("locked by session 4711 of app (psql)"));
  EXPECT_EQ(findings[1].code, Code::database_unanswered);
  EXPECT_EQ(findings[1].caused_by, 0U);
}

TEST(Diagnosis, FindsAnInlineProjectorThatWasLeftBehind) {
  const auto severity = [](std::chrono::seconds lag) {
    return worst_of(diagnose(with_projector([&](auto& one) {
      one.kind = ProjectionKind::inline_, one.lag_events = 2, one.lag = lag, one.owner = {};
    })));
  };
  EXPECT_EQ(severity(10s), Severity::fine);
  EXPECT_EQ(severity(2min), Severity::warning);
  EXPECT_EQ(severity(10min), Severity::critical);
}

TEST(Diagnosis, SaysWhatAWorkerThatStopsCannotKnow) {
  EXPECT_THAT(diagnose(with_stop(StopReason::broker_lost)).front().sentence,
              EndsWith("; but first: is nats.stream right?"));
  EXPECT_THAT(diagnose(with_stop(StopReason::store_went_back)).front().sentence,
              EndsWith(", those imported since then among them"));
}

TEST(Diagnosis, MergesThoseInTheSameTrouble) {
  Facts facts = with_stop(StopReason::poison);
  PartitionStatus other = facts.outbox->partitions.front();
  other.id = PartitionId::at(1, 4);
  facts.outbox->partitions.push_back(other);
  const std::vector<Finding> merged = in_groups(diagnose(facts));

  ASSERT_EQ(merged.size(), 1U);
  EXPECT_THAT(merged.front().sentence,
              StartsWith("p03, p01  stopped: poison; the first: partition p03 is stopped"));
}

TEST(Diagnosis, AdvisesByTheClassOfAFailure) {
  const auto remedy_of = [](std::optional<FailureClass> failure) {
    const Facts facts = with_partition([&](auto& one) { one.attempts = 2, one.failure = failure; });
    return diagnose(facts).front().remedy;
  };
  EXPECT_THAT(remedy_of(FailureClass::stream_full),
              AllOf(StartsWith("raise the limit"), HasSubstr("partitions retry p03'")));
  EXPECT_THAT(remedy_of(FailureClass::permission), HasSubstr("permissions"));
  for (const auto failure : {std::optional<FailureClass>{}, std::optional{FailureClass::other},
                             std::optional{FailureClass::no_answer}}) {
    EXPECT_THAT(remedy_of(failure), StartsWith("tried again by itself"));
  }
}

TEST(Diagnosis, SaysWhyMostMessagesAreParked) {
  OutboxStatus status{.at = now};
  status.parked = 3;
  const OutboxMessage sample{.sequence = GlobalSequence{7},
                             .last_error = "its payload of 1.3 MiB",
                             .failure = FailureClass::too_large};
  const Finding parked =
      diagnose({.at = now,
                .outbox = status,
                .failures = {{.streams = 2, .first_at = now - 5min, .sample = sample}}})
          .front();

  EXPECT_EQ(parked.sentence,
            "3 messages parked; event 7, and in 2 streams alike: its payload of 1.3 MiB");
  EXPECT_EQ(parked.since, now - 5min);
  EXPECT_EQ(parked.failure, FailureClass::too_large);
  EXPECT_THAT(parked.remedy, AllOf(HasSubstr("raise max_payload of the server"),
                                   HasSubstr("outbox retry --all'")));
}

TEST(Diagnosis, JudgesByTheLimitsThatItIsGiven) {
  OutboxStatus status{.at = now};
  status.parked = 3;
  const auto severity = [&](const Limit& limit) {
    return worst_of(diagnose({.at = now, .outbox = status}, {.parked_messages = limit}));
  };
  EXPECT_EQ(severity({.warning = 3}), Severity::fine);
  EXPECT_EQ(severity({.warning = 2}), Severity::warning);
  EXPECT_EQ(severity({.warning = 2, .critical = 2}), Severity::critical);
}

class Explaining : public test::ToolOutbox {
 protected:
  Ran why(const std::string& subject = {}) const {
    std::vector<std::string> words{"why"};
    if (!subject.empty()) words.push_back(subject);
    words.insert(words.end(), {"--db", db_});
    return run(words);
  }
  Ran check(const std::string& format = "text") const {
    return run({"check", "--db", db_, "--format", format});
  }
  void work() const {
    RawSqlite{db_}.run(
        "INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
        "heartbeat_ttl, broker, broker_since, is_cut_off) VALUES ('w1', 'elsewhere', 1, -1, 0, "
        "(strftime('%s', 'now') + 3600) * 1000000, 3600000000, 'connected', 0, 0)");
  }
};

TEST_F(Explaining, ToldThatNobodyWorks) {
  const Ran checked = check();
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.out, StartsWith("CRITICAL: 3 messages are pending, and there is no live "
                                      "worker"));
  const Ran message = why("1");
  EXPECT_EQ(message.code, 2);
  EXPECT_THAT(message.out,
              AllOf(StartsWith("message 1 of order-1 isn't published yet"),
                    HasSubstr("\n← 3 messages are pending, and there is no live worker"),
                    HasSubstr("outbox work'")));
}

TEST_F(Explaining, EachOfTheEventsThatAreNotPublished) {
  for (const auto type : {"note.taken", "note.read", "note.burnt"}) {
    run({"events", "append", "--db", db_, "--stream", "note-1", "--type", type, "--data", "{}"});
  }

  EXPECT_EQ(why("4").out,
            "event 4 (note.taken v1, version 1 of 'note-1') isn't one that is published\n");
  EXPECT_EQ(why("5").out,
            "event 5 (note.read v1, version 2 of 'note-1') isn't one that is published\n");
}

TEST_F(Explaining, AStoppedPartitionAndWhatWaitsForIt) {
  RawSqlite{db_}.run(
      "UPDATE outbox_partitions SET stopped = 'broker_lost', stopped_detail = 'gone\x1b[2J'");

  EXPECT_THAT(why().out, AllOf(StartsWith("partition all is stopped (broker_lost): gone"),
                               Not(HasSubstr("\x1b"))));
  EXPECT_EQ(why().code, 2);
  EXPECT_THAT(why("all").out, StartsWith("partition all is stopped (broker_lost)"));
  EXPECT_THAT(why("order-2").out, AllOf(StartsWith("message 2 of order-2 isn't published yet"),
                                        HasSubstr("\n← partition all is stopped (broker_lost)")));
}

TEST_F(Explaining, AParkedMessageAndThoseBehindIt) {
  work();
  run({"events", "append", "--db", db_, "--stream", "order-1", "--type", "order.placed",
       "--publish", "--data", "{}"});
  park(1);
  RawSqlite{db_}.run(
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error) "
      "SELECT stream, sequence, partition, 0, 0, 'behind', '' FROM outbox_messages WHERE sequence "
      "= 4; DELETE FROM outbox_messages WHERE sequence = 4");

  const Ran behind = why("4");
  EXPECT_EQ(behind.code, 1);
  EXPECT_THAT(behind.out,
              AllOf(StartsWith("message 4 of order-1 is parked behind an earlier message"),
                    HasSubstr("\n← message 1 of order-1 is parked (refused): too large"),
                    HasSubstr("outbox retry 1'")));
  EXPECT_THAT(check().out, HasSubstr("WARNING: 2 messages parked"));
}

TEST_F(Explaining, WhatIsWellAndWhatIsNotThere) {
  RawSqlite{db_}.run("DELETE FROM outbox_messages");
  work();
  EXPECT_EQ(check().out, "OK: nothing is wrong\n");
  EXPECT_EQ(check().code, 0);
  EXPECT_THAT(check("nagios").out, StartsWith("STELA STORE OK - nothing is wrong"));
  EXPECT_THAT(check("json").out,
              AllOf(HasSubstr(R"("state":"ok")"), HasSubstr(R"("findings":[])")));
  EXPECT_EQ(why().out, "nothing is wrong\n");
  EXPECT_EQ(why("w1").out, "nothing is wrong with worker w1\n");
  EXPECT_EQ(why("w1").code, 0);
  EXPECT_EQ(why("nobody").code, 3);
  EXPECT_EQ(why("4711").code, 3);
  EXPECT_EQ(check("xml").code, 3);
}

TEST_F(Explaining, WhereAMessageIsPublished) {
  const test::NatsServer nats;
  ASSERT_EQ(outbox({"work", "--until-empty", "--silent", "--ensure-stream", "--stream", "SHOP",
                    "--nats", nats.url()})
                .code,
            0);
  EXPECT_THAT(why("2").out, AllOf(StartsWith("message 2 of order-2 is published, at 20"),
                                  HasSubstr(", as #2 of partition all\n")));
  EXPECT_EQ(why("2").code, 0);
  EXPECT_THAT(run({"events", "show", "2", "--db", db_}).out,
              HasSubstr("message 2 of order-2 is published"));
  EXPECT_THAT(outbox({"show", "2"}).out, HasSubstr("at the broker  #2\n"));
  EXPECT_THAT(run({"events", "tree", "2", "--db", db_}).out, HasSubstr("published as #2\n"));
  const std::string event = run({"events", "show", "3", "--db", db_, "--json"}).out;
  const std::string key = "\"id\":\"";
  EXPECT_THAT(why(event.substr(event.find(key) + key.size(), 36)).out,
              StartsWith("message 3 of order-3 is published"));
}

TEST_F(Explaining, WhatWaitsToBeSentAgain) {
  const test::NatsServer nats;
  ASSERT_EQ(outbox({"work", "--until-empty", "--silent", "--ensure-stream", "--stream", "SHOP",
                    "--nats", nats.url()})
                .code,
            0);
  ASSERT_EQ(outbox({"republish", "--from", "1", "--to", "2", "--yes"}).code, 0);
  const Ran again = why("1");
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.out, AllOf(HasSubstr("is published, and is to be sent again as redelivery"),
                               HasSubstr("← 2 messages are pending, and there is no live worker")));
}

TEST_F(Explaining, APartitionThatWaitsForWhatIsWrongElsewhere) {
  const Ran partition = why("all");
  EXPECT_EQ(partition.code, 2);
  EXPECT_THAT(partition.out, StartsWith("3 messages are pending, and there is no live worker"));
  RawSqlite{db_}.run("DELETE FROM outbox_messages WHERE sequence > 1");
  park(1);
  EXPECT_THAT(why("all").out, StartsWith("1 message parked: all 1"));
}

TEST_F(Explaining, AnEventThatIsNotPublished) {
  ASSERT_EQ(run({"events", "append", "--db", db_, "--stream", "note-1", "--type", "note.taken",
                 "--data", "{}"})
                .code,
            0);
  for (const char* what : {"4", "note-1"}) {
    const Ran local = why(what);
    EXPECT_EQ(local.code, 0) << what;
    EXPECT_THAT(local.out, HasSubstr("isn't one that is published")) << what;
  }
}

TEST_F(Explaining, WhoDidWhat) {
  park(1);
  ASSERT_EQ(outbox({"retry", "1"}).code, 0);
  ASSERT_EQ(run({"timers", "hold", "--why", "moving", "--db", db_}).code, 0);
  const Ran log = run({"log", "--db", db_});
  EXPECT_EQ(log.code, 0);
  EXPECT_THAT(log.out,
              AllOf(HasSubstr("  outbox  "), HasSubstr("  retry "), HasSubstr("  timers  ")));
  EXPECT_THAT(run({"log", "--db", db_, "--limit", "1"}).out, Not(HasSubstr("  retry ")));
}

TEST_F(Explaining, InJsonThatNamesTheCause) {
  const Ran checked = check("json");
  EXPECT_THAT(checked.out,
              AllOf(HasSubstr(R"("state":"critical")"), HasSubstr(R"("code":"outbox_unattended")"),
                    HasSubstr(R"("caused_by":null)")));
}

TEST_F(Explaining, InReportsThatSayWhatTheyHoldOf) {
  const std::string begin = R"({"as_of":{"sequence":3,"at":")";
  EXPECT_THAT(check("json").out,
              AllOf(StartsWith(begin), HasSubstr(R"("asked":[{"what":"database","answered":true,)"
                                                 R"("since_at":null,"error":null}])")));
  EXPECT_THAT(outbox({"status", "--json"}).out, HasSubstr(R"("as_of":{"sequence":3,"at":")"));

  std::ofstream{db_, std::ios::trunc}
      << "nothing that SQLite wrote, however long it may look at it";
  EXPECT_THAT(check("json").out, AllOf(StartsWith(R"({"as_of":{"sequence":null,"at":")"),
                                       HasSubstr(R"("answered":false,"since_at":null,"error":")"),
                                       HasSubstr("file is not a database")));
}

TEST_F(Explaining, ADatabaseThatDoesNotAnswerIsCritical) {
  std::ofstream{db_, std::ios::trunc}
      << "nothing that SQLite wrote, however long it may look at it";
  const Ran checked = check();
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.out, AllOf(StartsWith("CRITICAL: database: "),
                                 HasSubstr("→ name the right database (db), "),
                                 Not(HasSubstr("start the database"))));
  EXPECT_EQ(outbox({"check"}).code, 2);
}

TEST_F(Explaining, AFileThatIsGoneIsCritical) {
  const Ran checked = run({"check", "--db", db_ + ".gone"});
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.out,
              AllOf(StartsWith("CRITICAL: database: there is no database at '"),
                    HasSubstr("→ name the right database (db), or restore a backup of it")));
}

TEST_F(Explaining, AHeldLockAndHowItEnds) {
  RawSqlite other{db_};
  other.run("BEGIN IMMEDIATE");
  EXPECT_THAT(run({"check", "--db", db_, "--set", "store.busy_timeout=50ms"}).out,
              HasSubstr("→ end the process that it names, or let it finish"));
}

TEST_F(Explaining, APartThatCannotBeAskedAndTheRest) {
  RawSqlite{db_}.run("ALTER TABLE stela_acknowledged RENAME TO hidden");
  EXPECT_THAT(check().out,
              AllOf(HasSubstr("CRITICAL: 3 messages are pending, and there is no live worker"),
                    HasSubstr("WARNING: database: its known findings can't be asked: ")));
  EXPECT_THAT(check("json").out,
              AllOf(HasSubstr(R"({"what":"database","answered":true,)"),
                    HasSubstr(R"({"what":"known findings","answered":false,"since_at":null,)")));
}

}  // namespace
}  // namespace stela::tool::diagnosis_test
