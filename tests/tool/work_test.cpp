#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/prometheus_text.hpp"
#include "support/raw_sqlite.hpp"
#include "tool/outbox_of_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace stela::test::work_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ToolWork : public OutboxOfOrders {
 protected:
  std::vector<std::string> work(std::vector<std::string> more) const {
    std::vector<std::string> words{"outbox",   "work", "--db",           db_, "--nats", nats_.url(),
                                   "--stream", "SHOP", "--ensure-stream"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  NatsServer nats_;
};

TEST_F(ToolWork, UntilEmptyPublishesTheBacklog) {
  append(20);
  EXPECT_EQ(member(status(), "pending"), "20");
  const Ran ran = run(work({"--until-empty", "--json"}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(member(status(), "pending"), "0");
  EXPECT_EQ(member(status(), "published"), "20");
}

TEST_F(ToolWork, UntilEmptyWaitsForNoOperator) {
  append(3);
  RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = 'broker_lost', broker_sequence = 9");
  const Ran lost = run(work({"--until-empty", "--silent"}));
  EXPECT_EQ(lost.code, 1);
  EXPECT_THAT(
      lost.err,
      HasSubstr("all pending messages are in stopped partitions (broker_lost, partition p0"));
  const std::vector<std::string> look{"outbox", "status", "--db", db_};
  EXPECT_THAT(run_well(look),
              HasSubstr("once the broker has them again; if they are gone for good, 'stela outbox "
                        "partitions adopt p0"));

  RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = 'poison'");
  EXPECT_THAT(run_well(look), HasSubstr("then 'stela outbox partitions resume p0"));
}

TEST_F(ToolWork, UntilEmptyWaitsForNothingAfterAStoppedGeneration) {
  append(1);
  run_well({"outbox", "partitions", "resize", "64", "--db", db_});
  append(8);
  RawSqlite raw{db_};
  raw.run(
      "UPDATE outbox_partitions SET stopped = 'broker_lost', broker_sequence = 9 "
      "WHERE partition = (SELECT partition FROM outbox_messages WHERE sequence = 1)");
  ASSERT_GT(raw.integer("SELECT count(*) FROM outbox_messages AS m "
                        "JOIN outbox_partitions AS p ON p.partition = m.partition "
                        "WHERE p.stopped IS NULL"),
            0);

  const Ran ran = run(work({"--until-empty", "--silent"}));

  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(
      ran.err,
      HasSubstr("all pending messages are in stopped partitions (broker_lost, partition p0"));
}

TEST_F(ToolWork, ATickIsAnObjectInTheVocabulary) {
  append(3);
  const auto lines = lines_of(run_well(work({"--once", "--json"})));
  ASSERT_THAT(lines, SizeIs(1));
  std::vector<std::string> keys;
  for (std::size_t at = lines[0].find("\":"); at != std::string::npos;
       at = lines[0].find("\":", at + 1)) {
    const std::size_t begin = lines[0].rfind('"', at - 1) + 1;
    keys.push_back(lines[0].substr(begin, at - begin));
  }
  EXPECT_THAT(keys, ::testing::IsSupersetOf({"claimed",
                                             "published",
                                             "failed",
                                             "duration_s",
                                             "backoff_s",
                                             "renewed_heartbeat",
                                             "purged_stale",
                                             "active_workers",
                                             "desired_count",
                                             "owned_count",
                                             "leased_count",
                                             "released_count",
                                             "at",
                                             "retried",
                                             "parked",
                                             "fenced",
                                             "read_backs",
                                             "pending",
                                             "oldest_pending_s",
                                             "broker",
                                             "state"}));
  EXPECT_EQ(member(lines[0], "claimed"), "3");
  EXPECT_EQ(member(lines[0], "published"), "3");
  EXPECT_EQ(member(lines[0], "owned_count"), "4");
  EXPECT_EQ(member(lines[0], "broker"), "connected");
}

TEST_F(ToolWork, PrintsAPlainLineATickWithoutATerminal) {
  append(3);
  const auto lines = lines_of(run_well(work({"--once"})));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], ::testing::MatchesRegex(
                            "[0-9T:-]+Z relaying: claimed 3, published 3, retried 0, parked 0 in "
                            ".*; pending 0; owns 4 of 4; broker connected"));
}

TEST_F(ToolWork, WritesItsMetricsToAFile) {
  append(2);
  const std::string file = dir_.file("stela.prom");
  run_well(work({"--until-empty", "--silent", "--metrics-file", file}));
  std::ifstream stream{file};
  const std::string text{std::istreambuf_iterator<char>{stream}, {}};
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_published_total 2\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_worker_published_total 2\n"));
  EXPECT_THAT(problems_in_metrics(text), ::testing::IsEmpty());
}

TEST_F(ToolWork, WritesItsMetricsOverNoOtherFile) {
  const auto refused = [&](const std::string& file, const std::string& why) {
    const Ran ran = run(work({"--once", "--silent", "--metrics-file", file}));
    EXPECT_EQ(ran.code, 1) << file;
    EXPECT_THAT(ran.err, HasSubstr(why)) << file;
  };
  for (const std::string part : {"", "-wal", "-shm", "-lock", "-journal"}) {
    refused(db_ + part, "is a file of the database");
  }
  std::filesystem::create_symlink(db_, dir_.file("link.prom"));
  refused(dir_.file("link.prom"), "is a file of the database");
  const std::string notes = dir_.file("notes.txt");
  std::ofstream{notes} << "not to be lost\n";
  refused(notes, "isn't a file of metrics");
  refused("/dev/null", "isn't a file of metrics");

  EXPECT_EQ(std::filesystem::file_size(notes), 15U);
  EXPECT_EQ(run({"verify", "--db", db_}).code, 0);
}

TEST_F(ToolWork, WritesItsMetricsThroughNoLink) {
  const std::string other = dir_.file("other");
  std::ofstream{other} << "";
  for (const char* const name : {"stela.prom", "stela.prom.new"}) {
    std::filesystem::create_symlink(other, dir_.file(name));
  }
  run_well(work({"--once", "--silent", "--metrics-file", dir_.file("stela.prom")}));
  EXPECT_EQ(std::filesystem::file_size(other), 0U);
  EXPECT_GT(std::filesystem::file_size(dir_.file("stela.prom")), 0U);
  EXPECT_TRUE(std::filesystem::is_symlink(dir_.file("stela.prom.new"))) << "it isn't the worker's";
}

TEST_F(ToolWork, WritesItsMetricsOverOlderOnesAndOverNothing) {
  const std::string file = dir_.file("stela.prom");
  std::ofstream{file} << "";
  for (int i = 0; i < 2; ++i) run_well(work({"--once", "--silent", "--metrics-file", file}));
  std::ifstream stream{file};
  const std::string text{std::istreambuf_iterator<char>{stream}, {}};
  EXPECT_THAT(text, HasSubstr("stela_outbox_published_total 0\n"));
}

TEST_F(ToolWork, HandsOverWhenAskedToStop) {
  append(5);
  Running worker{work({"--id", "w1"})};
  ASSERT_TRUE(eventually([&] { return member(status(), "published") == "5"; })) << worker.err();
  EXPECT_THAT(status(), HasSubstr(R"("owner":"w1")"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.err();
  EXPECT_THAT(status(), ::testing::Not(HasSubstr(R"("owner":"w1")")));
  EXPECT_THAT(worker.err(), HasSubstr("Finishing messages in flight"));
}

TEST_F(ToolWork, HandsOverWhenItsTerminalHangsUp) {
  Running worker{work({"--id", "w1"})};
  ASSERT_TRUE(eventually([&] { return status().find(R"("owner":"w1")") != std::string::npos; }));
  // A terminal that closes may say so twice.
  worker.signal(SIGSTOP);
  worker.signal(SIGHUP);
  worker.signal(SIGCONT);
  worker.signal(SIGHUP);
  EXPECT_EQ(worker.wait(), 0) << worker.err();
  EXPECT_THAT(status(), ::testing::Not(HasSubstr(R"("owner":"w1")")));
}

TEST_F(ToolWork, WorksOnWhenItsTerminalHangsUpAndSomebodySaidNoHup) {
  std::vector<std::string> words{"-c", R"(trap "" HUP; exec "$0" "$@")", program()};
  const std::vector<std::string> its = work({"--id", "w1", "--silent"});
  words.insert(words.end(), its.begin(), its.end());
  Running worker{words, {.program = "/bin/sh"}};
  ASSERT_TRUE(eventually([&] { return status().find(R"("owner":"w1")") != std::string::npos; }));
  worker.signal(SIGHUP);
  append(3);
  EXPECT_TRUE(eventually([&] { return member(status(), "published") == "3"; }));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.err();
}

TEST_F(ToolWork, HandsOverWhenItsOutputCantBeWritten) {
  for (const char* how : {"", "--once"}) {
    std::vector<std::string> words{"-c", R"(exec "$0" "$@" > /dev/full)", program()};
    const std::vector<std::string> its = work({"--id", "w1"});
    words.insert(words.end(), its.begin(), its.end());
    if (*how != '\0') words.emplace_back(how);
    const Ran ran = run(words, {.program = "/bin/sh"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("stdout can't be written"));
    const std::string seen = status();
    EXPECT_THAT(seen, ::testing::Not(HasSubstr(R"("owner":"w1")"))) << how;
    EXPECT_THAT(seen, HasSubstr(R"("workers":[])")) << how;
  }
}

TEST_F(ToolWork, ASecondSignalLeavesAtOnce) {
  Running worker{work({"--silent", "--interval-ms", "5000"})};
  ASSERT_TRUE(eventually([&] { return status().find(R"("is_alive":true)") != std::string::npos; }));
  // Stopped, so that both are pending when it goes on.
  worker.signal(SIGSTOP);
  worker.signal(SIGINT);
  worker.signal(SIGTERM);
  worker.signal(SIGCONT);
  EXPECT_EQ(worker.wait(), 130) << worker.err();
}

TEST_F(ToolWork, SilentPrintsNothing) {
  append(2);
  const Ran ran = run(work({"--until-empty", "--silent"}));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out + ran.err, "");
}

TEST_F(ToolWork, WaitsQuietlyForAnotherWorkersPartitions) {
  Running holder{work({"--id", "holder", "--silent"})};
  ASSERT_TRUE(
      eventually([&] { return status().find(R"("owner":"holder")") != std::string::npos; }));
  holder.signal(SIGSTOP);
  append(1);
  Running waiting{work({"--id", "waiting", "--until-empty"})};
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return waiting.out().find("standby") != std::string::npos; }));
  std::string text;
  std::ptrdiff_t lines = 0;
  ASSERT_TRUE(eventually([&] {
    text = waiting.out();
    lines = std::count(text.begin(), text.end(), '\n');
    return lines >= 6;
  }));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  EXPECT_LE(static_cast<double>(lines), 3 + 2 * passed.count()) << text;
  waiting.signal(SIGINT);
  EXPECT_EQ(waiting.wait(), 130);
  holder.signal(SIGCONT);
}

TEST_F(ToolWork, LogsNothingWhileItIsIdle) {
  Running worker{work({"--id", "w1", "--set", "outbox.lease_renew=100ms"})};
  const auto said = [&](const char* what) {
    return eventually([&] { return worker.out().find(what) != std::string::npos; });
  };
  ASSERT_TRUE(said(" idle: ")) << worker.out();
  const std::size_t before = lines_of(worker.out()).size();
  RawSqlite raw{db_};
  std::int64_t heartbeat = 0;
  for (int beats = 0; beats < 5; ++beats) {
    ASSERT_TRUE(eventually(
        [&] { return raw.integer("SELECT heartbeat_until FROM outbox_workers") != heartbeat; }));
    heartbeat = raw.integer("SELECT heartbeat_until FROM outbox_workers");
  }
  EXPECT_EQ(lines_of(worker.out()).size(), before) << worker.out();
  append(1);
  EXPECT_TRUE(said("published 1,")) << worker.out();
}

TEST_F(ToolWork, SaysThatItsDatabaseIsAwayWhereItSaysTheRest) {
  for (const std::string form : {"text", "json"}) {
    std::vector<std::string> words = work({"--id", "w1"});
    if (form == "json") words.emplace_back("--json");
    Running worker{words};
    const auto said = [&](const char* what) {
      return eventually([&] { return worker.out().find(what) != std::string::npos; });
    };
    ASSERT_TRUE(said("connected")) << worker.out();
    std::filesystem::rename(db_, dir_.file("away.db"));
    EXPECT_TRUE(said("database down")) << worker.out();
    EXPECT_THAT(worker.out(), HasSubstr("unable to open database file"));
    std::filesystem::rename(dir_.file("away.db"), db_);
  }
}

TEST_F(ToolWork, EndsOnceEnoughIsPublished) {
  append(10);
  EXPECT_EQ(run(work({"--max", "10"})).code, 0);
  EXPECT_EQ(member(status(), "published"), "10");
}

TEST_F(ToolWork, SeveralWorkersShareThePartitions) {
  Running worker{work({"--id", "crew", "--workers", "2", "--json"})};
  ASSERT_TRUE(eventually([&] {
    const std::string seen = status();
    return seen.find(R"("owner":"crew-1")") != std::string::npos &&
           seen.find(R"("owner":"crew-2")") != std::string::npos;
  })) << worker.err();
  append(8);
  ASSERT_TRUE(eventually([&] { return member(status(), "published") == "8"; }));
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(ToolWork, RefusesASecondWorkerOfAnOutboxWithoutLeasing) {
  RawSqlite{db_}.run("UPDATE outbox_settings SET leasing = 0");
  Running worker{work({"--id", "w1", "--silent"})};
  ASSERT_TRUE(eventually([&] { return status().find(R"("is_alive":true)") != std::string::npos; }));
  const Ran second = run(work({"--id", "w2", "--once"}));
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr("'w1' is alive"));
  EXPECT_THAT(second.err, ::testing::Not(HasSubstr("--id")));
  worker.signal(SIGKILL);
  worker.wait();
  append(1);
  EXPECT_EQ(run(work({"--id", "w2", "--once", "--silent"})).code, 0);
  EXPECT_EQ(member(status(), "pending"), "0");
}

TEST_F(ToolWork, RefusesASecondWorkerOfTheSameName) {
  Running worker{work({"--id", "w1", "--silent"})};
  ASSERT_TRUE(eventually([&] { return status().find(R"("is_alive":true)") != std::string::npos; }));
  const Ran twin = run(work({"--id", "w1", "--once"}));
  EXPECT_EQ(twin.code, 1);
  EXPECT_THAT(twin.err, HasSubstr("a worker named 'w1' is alive"));
  EXPECT_THAT(twin.err, HasSubstr("--id"));
  // One that was killed here leaves its name free.
  worker.signal(SIGKILL);
  worker.wait();
  EXPECT_EQ(run(work({"--id", "w1", "--once"})).code, 0);
}

TEST_F(ToolWork, RefusesOneOfTwoWorkersThatStartTogether) {
  Running first{work({"--id", "w1", "--silent"})};
  Running second{work({"--id", "w1", "--silent"})};
  const auto is_refused = [](Running& worker) {
    return worker.err().find("a worker named 'w1' is alive") != std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return is_refused(first) || is_refused(second); }));

  Running& refused = is_refused(first) ? first : second;
  Running& working = is_refused(first) ? second : first;
  EXPECT_EQ(refused.wait(), 1);
  append(1);
  ASSERT_TRUE(eventually([&] { return member(status(), "published") == "1"; }));
  working.signal(SIGTERM);
  EXPECT_EQ(working.wait(), 0) << working.err();
}

TEST_F(ToolWork, EndsByNameOnceANewerStelaHasMigratedTheDatabase) {
  Running worker{work({"--silent", "--set", "outbox.lease_renew=100ms"})};
  ASSERT_TRUE(eventually([&] { return status().find(R"("is_alive":true)") != std::string::npos; }));

  // What such a migration leaves.
  RawSqlite{db_}.run(
      "INSERT INTO stela_participants (name, detail, registered_at, checksum)"
      " VALUES ('schema:outbox:999', 'a newer Stela; restart this process with it', 0, 0)");

  const auto is_refused = [&] {
    return worker.err().find("a newer Stela migrated the tables of 'outbox'") != std::string::npos;
  };
  ASSERT_TRUE(eventually(is_refused)) << worker.err();
  EXPECT_THAT(worker.err(), HasSubstr("restart this process with the newer Stela"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 1);
}

TEST_F(ToolWork, WithoutABrokerSaysSo) {
  append(1);
  const Ran ran =
      run({"outbox", "work", "--db", db_, "--nats", "nats://127.0.0.1:1", "--until-empty"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_THAT(ran.err, HasSubstr("nats://127.0.0.1:1"));
  EXPECT_EQ(member(status(), "pending"), "1");
}

TEST_F(ToolWork, WithoutAStreamSaysSo) {
  append(1);
  const Ran ran =
      run({"outbox", "work", "--db", db_, "--nats", nats_.url(), "--stream", "NOWHERE", "--once"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_THAT(ran.err, HasSubstr("NOWHERE"));
}

TEST_F(ToolWork, TellsSystemdThatItIsReadyAndAlive) {
  const std::string path = dir_.file("notify");
  const int listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  Running worker{work({"--silent"}),
                 {.environment = {{"NOTIFY_SOCKET", path}, {"WATCHDOG_USEC", "200000"}}}};
  std::string heard;
  const auto hear = [&](const std::string& wanted) {
    return eventually([&] {
      std::array<char, 256> text;
      const ssize_t size = recv(listener, text.data(), text.size(), 0);
      if (size > 0) heard.append(text.data(), static_cast<std::size_t>(size)).append(";");
      return heard.find(wanted) != std::string::npos;
    });
  };
  EXPECT_TRUE(hear("READY=1"));
  EXPECT_TRUE(hear("WATCHDOG=1"));
  worker.signal(SIGTERM);
  EXPECT_TRUE(hear("STOPPING=1"));
  EXPECT_EQ(worker.wait(), 0);
  close(listener);
}

}  // namespace
}  // namespace stela::test::work_test
