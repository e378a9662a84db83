// Everything that can be wrong with what the tool is given: one sentence, the right exit code, and
// nothing lost.
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace stela::test::bad_input_test {
namespace {

using ::testing::HasSubstr;

class ToolBadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_});
    run_well({"outbox", "enable", "--db", db_});
    run_well({"events", "append", "--db", db_, "--stream", "order-1", "--type", "order.placed",
              "--publish", "--data", "{}"});
    std::ofstream{dir_.file("text.db")} << "This is a letter, and longer than a page's header is.";
    std::ofstream{dir_.file("foreign.db")};
    RawSqlite{dir_.file("foreign.db")}.run("CREATE TABLE letters (text TEXT)");
    std::ofstream{dir_.file("empty.db")};
    run_well({"migrate", "--db", dir_.file("newer.db")});
    RawSqlite{dir_.file("newer.db")}.run(
        "INSERT INTO stela_migrations SELECT module, number + 100, name, checksum, applied_at "
        "FROM stela_migrations WHERE module = 'eventstore'");
    std::ofstream{dir_.file("bad.toml")} << "db = [[\n";
  }
  std::string file(const std::string& name) const { return dir_.file(name); }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

struct BadInput {
  std::vector<std::string> words;
  int code;
  std::string problem;
  std::string input = {};
};

TEST_F(ToolBadInput, GetsOneSentenceAndItsExitCode) {
  const NatsServer nats;
  Running twin{
      {"outbox", "work", "--db", db_, "--id", "w1", "--silent", "--nats", "nats://127.0.0.1:1"}};
  ASSERT_TRUE(eventually([&] {
    const std::string seen = run_well({"outbox", "status", "--db", db_, "--json"});
    return seen.find(R"("is_alive":true)") != std::string::npos;
  }));
  const std::vector<BadInput> table{
      {{"events", "list"}, 2, "which database? Say --db FILE"},
      {{"events", "list", "--db", file("none.db")}, 3, "there is no database at"},
      {{"events", "list", "--db", file("none.db")}, 3, "migrate --db FILE' makes one"},
      {{"outbox", "status", "--db", file("text.db")}, 1, "text.db"},
      {{"migrate", "--db", file("text.db")}, 1, "text.db"},
      {{"outbox", "status", "--db", file("foreign.db")}, 1, "foreign.db"},
      {{"outbox", "status", "--db", file("newer.db")}, 1, "newer"},
      {{"migrate", "--db", file("newer.db")}, 1, "newer"},
      {{"checkpoint"}, 2, "which database? Say --db FILE"},
      {{"checkpoint", "--db", file("none.db")}, 3, "there is no database at"},
      {{"checkpoint", "--db", file("text.db")}, 1, "text.db"},
      {{"checkpoint", "--db", file("foreign.db")}, 1, "foreign.db"},
      {{"checkpoint", "--db", file("empty.db")}, 1, "empty.db' is empty"},
      {{"outbox", "status", "--db", file("empty.db")}, 1, "empty.db' is empty"},
      {{"checkpoint", "--db", file("newer.db")}, 1, "newer"},
      {{"checkpoint", "now", "--db", db_}, 2, "now"},
      {{"migrate", "--db", file("nowhere/shop.db")}, 1, "nowhere"},
      {{"backup", "--db", db_, db_}, 2, "shop.db"},
      {{"config", "show", "--config", file("bad.toml")}, 2, "bad.toml:1: "},
      {{"config", "show", "--set", "outbox.lease_tll=3s"}, 2, "Did you mean 'outbox.lease_ttl'?"},
      {{"config", "show", "--set", "x"}, 2, "--set wants KEY=VALUE"},
      {{"outbox", "wrok", "--db", db_}, 2, "Did you mean 'work'?"},
      {{"outbox", "work", "--db", db_, "--wokrers", "2"}, 2, "Did you mean '--workers'?"},
      {{"outbox", "work", "--db", db_, "--workers", "0"}, 2, "--workers is a whole number from 1"},
      {{"outbox", "work", "--db", db_, "--workers", "99999999999999999999"}, 2, "--workers is"},
      {{"outbox", "work", "--db", db_, "--once", "--until-empty"}, 2, "contradict each other"},
      {{"outbox", "work", "--db", db_, "--silent", "--json"}, 2, "contradict each other"},
      {{"outbox", "work", "--db", db_, "--no-leasing", "--once"}, 2, "created with leasing"},
      {{"outbox", "work", "--db", db_, "--interval-ms", "60000"}, 2, "outbox.lease_renew"},
      {{"outbox", "work", "--db", db_, "--set", "outbox.lease_renew=20s", "--once"},
       2,
       "lease_renew"},
      {{"outbox", "work", "--db", db_, "--nats", "nats://a:b@c"}, 2, "secrets come from files"},
      {{"outbox", "work", "--db", db_, "--nats", "http://127.0.0.1:1"}, 2, "isn't nats or tls"},
      {{"outbox", "work", "--db", db_, "--nats", "nats://127.0.0.1:port"}, 2, "its port isn't"},
      {{"outbox", "work", "--db", db_, "--nats", "nats://nowhere.invalid", "--once", "--silent"},
       4,
       "the host 'nowhere.invalid' can't be found"},
      {{"outbox", "work", "--db", db_, "--nats", "nats://127.0.0.1:1", "--once", "--silent"},
       4,
       "the broker at nats://127.0.0.1:1"},
      {{"outbox", "work", "--db", db_, "--stream", "a b", "--once"}, 2, "a b"},
      {{"outbox", "work", "--db", db_, "--prefix", "$JS", "--ensure-stream", "--once"},
       2,
       "take a word of your own, such as \"shop\""},
      {{"outbox", "work", "--db", db_, "--set", "nats.prefix=_INBOX", "--once"},
       2,
       "take a word of your own"},
      {{"outbox", "reconcile", "--db", db_, "--against-broker", "--prefix", "$KV"},
       2,
       "take a word of your own"},
      {{"outbox", "work", "--db", db_, "--nats", nats.url(), "--id", "w1", "--once"},
       1,
       "a worker named 'w1' is alive"},
      {{"outbox", "work", "--db", db_, "--metrics", "here", "--once"}, 2, "the port of metrics"},
      {{"outbox", "work", "--db", db_, "--metrics", "256.1.1.1:80", "--once"}, 2, "IP address"},
      {{"outbox", "work", "--db", db_, "--metrics-file", file("nowhere/m.prom"), "--once"},
       1,
       "m.prom"},
      {{"outbox", "reconcile", "--db", db_, "--against-broker", "--nats", "nats://127.0.0.1:1"},
       4,
       "nats://127.0.0.1:1"},
      {{"outbox", "reconcile", "--db", db_, "--from", "0"}, 2, "--from is a whole number from 1"},
      {{"outbox", "retry", "7", "--db", db_}, 3, "7"},
      {{"outbox", "retry", "seven", "--db", db_}, 2, "whole number"},
      {{"outbox", "list", "--db", db_, "--partition", "p9999"}, 2, "p00, p01"},
      {{"outbox", "partitions", "resize", "4096", "--db", db_}, 2, "1 to 1024"},
      {{"outbox", "partitions", "adopt", "all", "--yes", "--db", db_}, 2, "stopped"},
      {{"outbox", "partitions", "retry", "all", "--db", db_}, 2, "isn't backing off"},
      {{"outbox", "partitions", "retry", "--db", db_}, 2, "Pass PARTITION or --all"},
      {{"outbox", "enable", "--db", db_, "--fence", "none"}, 2, "fence"},
      {{"outbox", "enable", "--db", db_, "--fence", "barbed"}, 2, "stream|subject|none"},
      {{"events", "show", "-3", "--db", db_}, 2, "whole number"},
      {{"events", "show", "99", "--db", db_}, 3, "there is no event 99"},
      {{"events", "list", "--db", db_, "--since", "yesterday"},
       2,
       "or how long ago, with its unit: 15m"},
      {{"events", "list", "--db", db_, "--since", "15"}, 2, "with its unit: 15m; not '15'"},
      {{"outbox", "purge", "--db", db_, "--older-than", "7"},
       2,
       "500ms, 7s, 7m, 7h or 7d, not '7'"},
      {{"outbox", "purge", "--db", db_, "--older-than", "90m"}, 2, "a whole number of hours"},
      {{"config", "show", "--set", "outbox.lease_ttl=7"}, 2, "7s, 7m, 7h or 7d, not '7'"},
      {{"events", "list", "--db", db_, "--limit", "0"}, 2, "--limit is a whole number from 1"},
      {{"events", "append", "--db", db_, "--type", "a.b", "--data", "{}"}, 2, "--stream is needed"},
      {{"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b"},
       2,
       "--data or --stdin"},
      {{"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b", "--data", "{"},
       2,
       "--data isn't JSON"},
      {{"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b", "--data", "[1]"},
       2,
       "a JSON object"},
      {{"events", "append", "--db", db_, "--stream", "Order 1", "--type", "a.b", "--data", "{}"},
       2,
       "Order 1"},
      {{"events", "append", "--db", db_, "--stream", "order-1", "--type", "a b", "--data", "{}"},
       2,
       "a b"},
      {{"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b", "--version", "0",
        "--data", "{}"},
       2,
       "--version is"},
      {{"events", "append", "--db", db_, "--stdin"}, 1, "line 1: ", "nonsense\n"},
      {{"events", "append", "--db", db_, "--stdin"},
       1,
       "line 1: there is no field 'straem'. Did you mean 'stream'?",
       "{\"straem\":\"order-1\",\"type\":\"a.b\",\"data\":{}}\n"},
      {{"events", "append", "--db", db_, "--stdin", "--stream", "order-1"},
       1,
       "the field type is missing",
       "{\"data\":{}}\n"},
      {{"events", "append", "--db", db_, "--batch", "2", "--stream", "order-1", "--type", "a.b",
        "--data", "{}"},
       2,
       "--batch goes with --stdin"},
      {{"import", "--db", db_, file("none.jsonl")}, 3, "none.jsonl"},
      {{"import", "--db", db_}, 1, "line 1: ", "{}\n"},
      {{"streams", "show", "order-9", "--db", db_}, 3, "order-9"},
      {{"streams", "show", "Order", "--db", db_}, 2, "Order"},
      {{"streams", "state", "order-1", "--db", db_}, 2, "app.aggregate"},
      {{"snapshots", "drop", "--db", db_}, 2, "which snapshots?"},
      {{"snapshots", "drop", "--db", db_, "--stream", "order-1", "--yes"}, 3, "no snapshot"},
      {{"projections", "retry", "nobody", "--db", db_}, 3, "nobody"},
      {{"projections", "run", "--db", db_}, 1, "app.projections"},
      {{"inbox", "retry", "3", "--db", db_}, 3, "no parked message 3"},
      {{"completion", "tcsh"}, 2, "bash, zsh and fish"},
  };
  const std::string before = run_well({"export", "--db", db_});
  for (const BadInput& bad : table) {
    std::string shown;
    for (const std::string& word : bad.words) shown += word + " ";
    SCOPED_TRACE(shown);
    const Ran ran = run(bad.words, {.input = bad.input});
    EXPECT_EQ(ran.code, bad.code) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr(bad.problem));
    // A sentence, and where help is.
    EXPECT_LE(lines_of(ran.err).size(), 2U) << ran.err;
    EXPECT_EQ(ran.err.find("terminate"), std::string::npos);
  }
  EXPECT_EQ(run_well({"export", "--db", db_}), before);
  EXPECT_EQ(member(run_well({"outbox", "status", "--db", db_, "--json"}), "pending"), "1");
  twin.signal(SIGTERM);
  EXPECT_EQ(twin.wait(), 0) << twin.err();

  // Nobody holds the partition any more, so that a worker sees which stream it is to write to.
  const Ran astray = run({"outbox", "work", "--db", db_, "--nats", nats.url(), "--stream",
                          "NOWHERE", "--once", "--silent"});
  EXPECT_EQ(astray.code, 4) << astray.err;
  EXPECT_THAT(astray.err, HasSubstr("there is no JetStream stream 'NOWHERE'"));
  EXPECT_EQ(member(run_well({"outbox", "status", "--db", db_, "--json"}), "pending"), "1");
}

TEST_F(ToolBadInput, ErrorsAreJsonWhereItWasAskedFor) {
  const Ran ran = run({"events", "show", "99", "--db", db_, "--json"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "{\"error\":\"not_found\",\"message\":\"stela: there is no event 99\"}\n");
}

TEST_F(ToolBadInput, ANewerSchemaIsLeftAlone) {
  RawSqlite raw{db_};
  raw.run(
      "INSERT INTO stela_migrations SELECT module, number + 100, name, checksum, applied_at "
      "FROM stela_migrations WHERE module = 'eventstore'");
  const Ran ran = run({"events", "list", "--db", db_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("newer"));
}

TEST_F(ToolBadInput, ADatabaseInUseIsSaidSo) {
  RawSqlite raw{db_};
  raw.run("BEGIN EXCLUSIVE");
  const Ran ran = run({"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b",
                       "--data", "{}", "--set", "store.busy_timeout=200ms"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("locked"));
  raw.run("ROLLBACK");
  EXPECT_EQ(lines_of(run_well({"events", "list", "--db", db_, "--json"})).size(), 1U);
}

TEST_F(ToolBadInput, NoPermissionIsSaidSo) {
  std::filesystem::create_directory(file("folder.db"));
  const Ran folder = run({"events", "list", "--db", file("folder.db")});
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.err, HasSubstr("folder.db"));

  using std::filesystem::perms;
  std::filesystem::permissions(
      dir_.path(), perms::owner_all | perms::others_exec | perms::others_read | perms::group_all);
  std::filesystem::permissions(db_, perms::none);
  const Ran unreadable = run_unprivileged({"events", "list", "--db", db_});
  EXPECT_EQ(unreadable.code, 1) << unreadable.out;
  EXPECT_THAT(unreadable.err, HasSubstr("shop.db"));
  EXPECT_LE(lines_of(unreadable.err).size(), 1U) << unreadable.err;
  const Ran nowhere = run_unprivileged({"migrate", "--db", file("new.db")});
  EXPECT_EQ(nowhere.code, 1) << nowhere.out;
  EXPECT_THAT(nowhere.err, HasSubstr("new.db"));
}

TEST_F(ToolBadInput, AFileThatMayOnlyBeReadIsSaidSo) {
  using std::filesystem::perms;
  std::filesystem::permissions(
      dir_.path(), perms::owner_all | perms::others_exec | perms::others_read | perms::group_all);
  std::filesystem::permissions(db_, perms::owner_read | perms::group_read | perms::others_read);
  const Ran ran = run_unprivileged(
      {"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b", "--data", "{}"});
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("shop.db"));
  EXPECT_LE(lines_of(ran.err).size(), 1U) << ran.err;
}

}  // namespace
}  // namespace stela::test::bad_input_test
