// Everything that can be wrong with what the tool is given: one sentence, the right exit code, and
// nothing lost.
#include "support/nats_server.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace stela::test {
namespace {

using testing::HasSubstr;

class ToolBadInput : public testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_});
    run_well({"outbox", "enable", "--db", db_});
    run_well({"events", "append", "--db", db_, "--stream", "order-1", "--type", "order.placed",
              "--publish", "--data", "{}"});
    std::ofstream{dir_.file("text.db")} << "This is a letter, and longer than a page's header is.";
    std::ofstream{dir_.file("foreign.db")};
    RawSqlite{dir_.file("foreign.db")}.run("CREATE TABLE letters (text TEXT)");
    run_well({"migrate", "--db", dir_.file("newer.db")});
    RawSqlite{dir_.file("newer.db")}.run("PRAGMA user_version = 9999");
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
  const std::vector<BadInput> table{
      {{"events", "list"}, 2, "which database? Say --db FILE"},
      {{"events", "list", "--db", file("none.db")}, 3, "there is no database at"},
      {{"events", "list", "--db", file("none.db")}, 3, "migrate --db FILE' makes one"},
      {{"outbox", "status", "--db", file("text.db")}, 1, "text.db"},
      {{"migrate", "--db", file("text.db")}, 1, "text.db"},
      {{"outbox", "status", "--db", file("foreign.db")}, 1, "foreign.db"},
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
      {{"outbox", "work", "--db", db_, "--no-leasing", "--once"}, 2, "made with leasing"},
      {{"outbox", "work", "--db", db_, "--interval-ms", "60000"}, 2, "outbox.lease_renew"},
      {{"outbox", "work", "--db", db_, "--set", "outbox.lease_renew=20s", "--once"},
       2,
       "lease_renew"},
      {{"outbox", "work", "--db", db_, "--nats", "nats://a:b@c"}, 2, "secrets come from files"},
      {{"outbox", "work", "--db", db_, "--nats", "nats://127.0.0.1:1", "--once", "--silent"},
       4,
       "the broker at nats://127.0.0.1:1"},
      {{"outbox", "work", "--db", db_, "--stream", "a b", "--once"}, 2, "a b"},
      {{"outbox", "retry", "7", "--db", db_}, 2, "7"},
      {{"outbox", "retry", "seven", "--db", db_}, 2, "whole number"},
      {{"outbox", "list", "--db", db_, "--partition", "p9999"}, 2, "p00, p01"},
      {{"outbox", "partitions", "resize", "4096", "--db", db_}, 2, "1 to 1024"},
      {{"outbox", "partitions", "adopt", "all", "--yes", "--db", db_}, 2, "stopped"},
      {{"outbox", "enable", "--db", db_, "--fence", "none"}, 2, "fence"},
      {{"outbox", "enable", "--db", db_, "--fence", "barbed"}, 2, "stream|subject|none"},
      {{"events", "show", "-3", "--db", db_}, 2, "whole number"},
      {{"events", "show", "99", "--db", db_}, 3, "there is no event 99"},
      {{"events", "list", "--db", db_, "--since", "yesterday"}, 2, "or how long ago: 15m"},
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
      {{"streams", "state", "order-1", "--db", db_}, 1, "app.aggregate"},
      {{"snapshots", "drop", "--db", db_}, 2, "which snapshots?"},
      {{"snapshots", "drop", "--db", db_, "--stream", "order-1", "--yes"}, 3, "no snapshot"},
      {{"projections", "retry", "nobody", "--db", db_}, 2, "nobody"},
      {{"projections", "run", "--db", db_}, 1, "app.projections"},
      {{"inbox", "retry", "3", "--db", db_}, 3, "no dead letter 3"},
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
  if (geteuid() == 0) {
    // Root may read everything: a folder where the database should be is as unreadable.
    std::filesystem::create_directory(file("folder.db"));
    const Ran ran = run({"events", "list", "--db", file("folder.db")});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("folder.db"));
    return;
  }
  std::filesystem::permissions(db_, std::filesystem::perms::none);
  const Ran ran = run({"events", "list", "--db", db_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("shop.db"));
}

}  // namespace
}  // namespace stela::test
