// The commands while something is wrong with the PostgreSQL server or with what names it.
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace stela::test::postgres_trouble_test {
namespace {

using namespace std::chrono_literals;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Steady = std::chrono::steady_clock;

class ToolInTrouble : public ::testing::Test {
 protected:
  Ran stela(std::vector<std::string> words, RunOptions options = {}) const {
    options.environment.emplace("STELA_DB", server_.url());
    return run(words, options);
  }
  std::string well(const std::vector<std::string>& words) const {
    const Ran ran = stela(words);
    EXPECT_EQ(ran.code, 0) << ::testing::PrintToString(words) << ran.err;
    return ran.out;
  }
  std::vector<std::string> appending(const std::string& stream) const {
    return {"events",       "append",    "--stream", stream, "--type",
            "order.placed", "--publish", "--data",   "{}"};
  }
  std::vector<std::string> with(std::vector<std::string> words, const std::string& setting) const {
    words.insert(words.end(), {"--set", setting});
    return words;
  }
  void make_store() {
    well({"migrate"});
    well({"outbox", "enable"});
    well(appending("order-1"));
  }
  /// And an append says so.
  void miss_standby() {
    server_.ask("ALTER SYSTEM SET synchronous_standby_names = 'db2'");
    server_.ask("SELECT pg_reload_conf()");
    const Ran ran = stela(with(appending("order-2"), "store.commit_timeout=500ms"));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, AllOf(HasSubstr("synchronous_standby_names = 'db2'"),
                               HasSubstr("no standby is connected")));
  }

  PostgresServer server_;
};

TEST_F(ToolInTrouble, ReportsThoughTheSynchronousStandbyIsMissing) {
  make_store();
  miss_standby();
  const std::vector<std::vector<std::string>> reports{{"events", "list"},
                                                      {"events", "show", "1"},
                                                      {"events", "stats"},
                                                      {"streams", "list"},
                                                      {"streams", "show", "order-1"},
                                                      {"snapshots", "list"},
                                                      {"tags", "types"},
                                                      {"outbox", "status"},
                                                      {"outbox", "workers"},
                                                      {"outbox", "list"},
                                                      {"outbox", "show", "1"},
                                                      {"outbox", "partitions", "list"},
                                                      {"projections", "status"},
                                                      {"processes", "list"},
                                                      {"timers", "list"},
                                                      {"timers", "log"},
                                                      {"inbox", "status"},
                                                      {"completion", "--values", "partitions"},
                                                      {"verify"}};
  for (const auto& report : reports) {
    const auto begun = Steady::now();
    const Ran ran = stela(report);
    EXPECT_LT(Steady::now() - begun, 8s) << ::testing::PrintToString(report);
    EXPECT_TRUE(ran.code == 0 || ran.code == 3) << ::testing::PrintToString(report) << ran.err;
  }
  EXPECT_THAT(well({"events", "list"}), HasSubstr("order-1"));
  EXPECT_THAT(well({"outbox", "status"}), HasSubstr("pending    1"));
  for (const auto& check :
       {std::vector<std::string>{"doctor"}, {"outbox", "check"}, {"timers", "check"}}) {
    const auto begun = Steady::now();
    EXPECT_THAT(stela(check).out, HasSubstr("commits wait for 'db2'"));
    EXPECT_LT(Steady::now() - begun, 8s) << check.front();
  }
}

TEST_F(ToolInTrouble, NamesTheMissingStandbyWhereItMustWaitForIt) {
  make_store();
  miss_standby();
  for (const auto& words : {std::vector<std::string>{"events", "head"},
                            {"events", "query", "--type", "order.placed"},
                            {"export"},
                            {"outbox", "retry", "--all"},
                            {"outbox", "purge", "--older-than", "7d", "--yes"},
                            {"timers", "hold", "--why", "a test"}}) {
    const auto begun = Steady::now();
    const Ran ran = stela(with(words, "store.commit_timeout=500ms"));
    EXPECT_LT(Steady::now() - begun, 10s) << ::testing::PrintToString(words);
    EXPECT_EQ(ran.code, 1) << ::testing::PrintToString(words);
    EXPECT_THAT(ran.err, HasSubstr("synchronous_standby_names = 'db2'"));
  }
}

TEST_F(ToolInTrouble, AWorkerThatStartsWithoutItsServerEnds) {
  make_store();
  server_.crash();
  for (const auto& words :
       {std::vector<std::string>{"outbox", "work"}, {"outbox", "work", "--once"}}) {
    const Ran ran = stela(with(words, "store.busy_timeout=100ms"));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("can't connect to"));
  }
}

TEST_F(ToolInTrouble, TailFollowsAServerThatIsStartedAgain) {
  make_store();
  Running tail{{"events", "tail", "--from", "1", "--json", "--db", server_.url(), "--set",
                "store.busy_timeout=100ms"}};
  ASSERT_TRUE(eventually([&] { return lines_of(tail.out()).size() == 1; }));
  server_.crash();
  ASSERT_TRUE(eventually([&] {
    return tail.err().find("trying again in 1.0 s") != std::string::npos;
  })) << tail.err();
  server_.start_again();
  for (int i = 0; i < 3; ++i) well(appending("order-2"));
  ASSERT_TRUE(eventually([&] { return lines_of(tail.out()).size() == 4; })) << tail.out();
  std::vector<std::string> sequences;
  for (const std::string& line : lines_of(tail.out())) {
    sequences.push_back(member(line, "sequence"));
  }
  EXPECT_THAT(sequences, ElementsAre("1", "2", "3", "4"));
  // With growing pauses.
  EXPECT_LT(lines_of(tail.err()).size(), 20U);
  tail.signal(SIGINT);
  EXPECT_EQ(tail.wait(), 0);
}

TEST_F(ToolInTrouble, TailEndsByASignalWhileTheServerIsDown) {
  make_store();
  Running tail{{"events", "tail", "--db", server_.url(), "--set", "store.busy_timeout=100ms"}};
  ASSERT_TRUE(eventually([&] { return lines_of(tail.out()).size() == 1; }));
  server_.crash();
  ASSERT_TRUE(eventually([&] { return tail.err().find("trying again") != std::string::npos; }));
  tail.signal(SIGINT);
  EXPECT_EQ(tail.wait(), 0);
}

/// A file whose whole export has many events, an outbox and the end.
std::string export_of_many(const TempDir& dir, int events) {
  const std::string file = dir.file("shop.db");
  run_well({"migrate", "--db", file});
  run_well({"outbox", "enable", "--db", file});
  std::string lines;
  for (int i = 0; i < events; ++i) {
    lines += R"({"stream":"order-)" + std::to_string(i % 7) +
             R"(","type":"order.placed","publish":true,"data":{}})" + '\n';
  }
  run_well({"events", "append", "--stdin", "--batch", "1000", "--db", file}, {.input = lines});
  return run_well({"export", "--whole", "--db", file});
}

TEST_F(ToolInTrouble, ImportContinuesAfterAnExportThatWasCutOff) {
  const TempDir dir;
  const std::string text = export_of_many(dir, 2500);
  well({"migrate"});
  // Within an event, between two, and before the end.
  const std::size_t end = text.rfind('\n', text.size() - 2) + 1;
  const std::size_t some = text.find('\n', text.size() / 3) + 1;
  for (const std::size_t size : {some - 10, some, end}) {
    const Ran ran = stela({"import"}, {.input = text.substr(0, size)});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("if it is cut off, export again and import that"));
  }
  EXPECT_THAT(stela({"import"}, {.input = text}).out, HasSubstr("were there already"));
  EXPECT_EQ(well({"export"}), run_well({"export", "--db", dir.file("shop.db")}));
  const Ran again = stela({"import"}, {.input = text});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("that one was complete, and nothing is left to do"));
}

TEST_F(ToolInTrouble, ImportContinuesAfterTheServersCrash) {
  const TempDir dir;
  const std::string file = dir.file("all.jsonl");
  const std::string text = export_of_many(dir, 30'000);
  std::ofstream{file} << text;
  well({"migrate"});
  Running import{{"import", file, "--db", server_.url(), "--set", "store.commit_timeout=500ms",
                  "--set", "store.busy_timeout=500ms"}};
  ASSERT_TRUE(eventually([&] { return server_.ask("SELECT count(*) FROM stela.events") != "0"; }));
  server_.crash();
  EXPECT_EQ(import.wait(), 1);
  EXPECT_THAT(import.err(), HasSubstr("import the same again, and it continues"));
  server_.start_again();
  EXPECT_EQ(stela({"import", file}).code, 0);
  EXPECT_EQ(well({"export"}), run_well({"export", "--db", dir.file("shop.db")}));
}

TEST_F(ToolInTrouble, IsAskedForAFewSecondsWhileTheServerHangs) {
  make_store();
  PostgresServer other;
  other.pause();
  const auto begun = Steady::now();
  const std::string both = "postgresql://postgres@/postgres?host=" + other.folder() + "," +
                           server_.folder() + "&port=" + std::to_string(other.port()) + "," +
                           std::to_string(server_.port());
  const Ran one = run({"check", "--db", other.url()});
  const auto half = Steady::now();
  const Ran two = run({"check", "--db", both});
  const auto done = Steady::now();
  other.resume();
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.out, AllOf(HasSubstr("can't connect"), HasSubstr("start the database's server")));
  EXPECT_LT(half - begun, 8s);
  EXPECT_EQ(two.code, 2) << two.out;
  EXPECT_LT(done - half, 15s) << two.out;
}

TEST_F(ToolInTrouble, SaysWhoLocksATableAndWhatTheRestIsLike) {
  make_store();
  std::jthread lock{[&] {
    try {
      server_.ask(
          "BEGIN; LOCK TABLE stela.projections IN ACCESS EXCLUSIVE MODE; "
          "SELECT pg_sleep(60)");
    } catch (const std::exception&) {
      // Its session was ended.
    }
  }};
  const auto check = [&] { return stela({"check"}).out; };
  ASSERT_TRUE(eventually([&] { return check().find("is locked by") != std::string::npos; }));
  const auto begun = Steady::now();
  EXPECT_THAT(check(),
              AllOf(HasSubstr("CRITICAL: table projections is locked by session "),
                    HasSubstr("CRITICAL: 1 message is pending, and there is no live worker"),
                    HasSubstr("database: its projectors can't be asked: ")));
  EXPECT_LT(Steady::now() - begun, 10s);
  server_.ask(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%sleep(60)'");
}

/// What names a database in a way that can't be used, each with a secret in it.
const std::vector<std::string> wrong_locations{
    "host=127.0.0.1 port=1 user=app password=c4n4ry dbname=shop",
    "user=app password='c4n4ry or more' host=127.0.0.1 port=1",
    "user=app password = 'it\\'s c4n4ry' host=127.0.0.1 port=1",
    "postgresql://app:or/c4n4ry@127.0.0.1:1/shop",
    "postgresql://app:c4n4ry/or@127.0.0.1:1/shop",
    "postgresql://app:or@c4n4ry@127.0.0.1:1/shop",
    "postgresql://app:c4n4ry#or@127.0.0.1:1/shop",
    "postgresql://app:or#c4n4ry@127.0.0.1:1/shop",
    "postgresql://app:c4n4ry%@127.0.0.1:1/shop",
    "postgresql://app:c4n4ry%2For@127.0.0.1:1/shop",
    "postgresql://app:or?c4n4ry@127.0.0.1:1/shop",
    "postgresql://app:c4n4ry",
    "postgresql://app:c4n4ry/shop",
    "postgresql:app:c4n4ry@127.0.0.1/shop",
    "POSTGRESQL://app:c4n4ry@127.0.0.1:1/shop",
    "jdbc:postgresql://127.0.0.1:1/shop?user=app&password=c4n4ry",
    "mysql://app:c4n4ry@127.0.0.1:1/shop",
    "postgresql://app@127.0.0.1:1/shop?password=c4n4ry",
    "postgresql://app@127.0.0.1:1/shop?password=or%20c4n4ry",
    "postgresql://app@127.0.0.1:1/shop?password=or&c4n4ry",
    "postgresql://app@127.0.0.1:1/shop?sslpassword=c4n4ry",
    "postgresql://app@127.0.0.1:1/shop?pasword=c4n4ry",
    "postgresql://app:c4n4ry@127.0.0.1:port/shop",
    "postgresql://app:c4n4ry@nowhere.invalid/shop"};

TEST(ToolWithSecrets, ShowsNoPasswordOfALocation) {
  for (const std::string& location : wrong_locations) {
    const RunOptions there{.environment = {{"STELA_DB", location}}};
    std::string all;
    for (const char* const form : {"--no-color", "--json", "--log=json"}) {
      for (std::vector<std::string> words : {std::vector<std::string>{"doctor"},
                                             {"streams", "list"},
                                             {"migrate"},
                                             {"outbox", "check"},
                                             {"config", "show"}}) {
        words.emplace_back(form);
        const Ran ran = run(words, there);
        EXPECT_EQ(ran.code == 0, words[0] == "config") << location;
        all += ran.out + ran.err;
      }
    }
    EXPECT_THAT(all, Not(HasSubstr("c4n4ry"))) << location;
  }
}

TEST(ToolWithSecrets, ShowsNoPasswordOfAFileThatCannotBeRead) {
  const TempDir dir;
  for (const char* const line :
       {"db = \"postgresql://app:c4n4ry@127.0.0.1:1/shop", "db = postgresql://app:c4n4ry@h/shop",
        "db = \"host=h password=c4n4ry\"", "db: \"postgresql://app:c4n4ry@h/shop\"",
        "[db]\nurl = \"postgresql://app:c4n4ry@h/shop\""}) {
    std::ofstream{dir.file("stela.toml")} << line << '\n';
    const Ran ran = run({"streams", "list"}, {.folder = dir.path().string()});
    EXPECT_NE(ran.code, 0);
    EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("c4n4ry"))) << line;
  }
}

TEST(ToolWithSecrets, SaysWhatNamesADatabase) {
  const auto refusal = [](const std::string& location) {
    const Ran ran = run({"streams", "list", "--db", location});
    EXPECT_EQ(ran.code, 2) << location;
    return ran.err;
  };
  const std::string right_url = "postgresql://user@host/database";
  EXPECT_THAT(refusal("host=db user=app dbname=shop"), HasSubstr(right_url));
  EXPECT_THAT(refusal("mysql://app@db/shop"), HasSubstr(right_url));
  EXPECT_THAT(refusal("postgresql:app@db/shop"), HasSubstr("two slashes"));
  EXPECT_THAT(refusal("postgresql://app:a/b@db/shop"), HasSubstr("write %XX"));
}

}  // namespace
}  // namespace stela::test::postgres_trouble_test
