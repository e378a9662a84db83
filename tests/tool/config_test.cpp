#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace stela::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ToolConfig : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream{dir_.file("stela.toml")} << text; }
  RunOptions here() const { return {.folder = dir_.path().string()}; }

  TempDir dir_;
};

TEST_F(ToolConfig, FlagsWinOverTheEnvironmentOverTheFile) {
  write("db = \"file.db\"\n[outbox]\nlease_ttl = \"30s\"\nbatch_size = 7\nretry_jitter = 0.5\n");
  RunOptions options = here();
  options.environment = {{"STELA_OUTBOX_BATCH_SIZE", "8"}, {"STELA_DB", "variable.db"}};

  const std::string shown = run_well(
      {"config", "show", "--json", "--db", "flag.db", "--set", "nats.stream=SHOP"}, options);

  EXPECT_THAT(shown, HasSubstr(R"("db":{"value":"flag.db","from":"--db"})"));
  EXPECT_THAT(shown,
              HasSubstr(R"("outbox.batch_size":{"value":"8","from":"STELA_OUTBOX_BATCH_SIZE"})"));
  EXPECT_THAT(shown, HasSubstr(R"("outbox.lease_ttl":{"value":"30s","from":"stela.toml:3"})"));
  EXPECT_THAT(shown, HasSubstr(R"("outbox.retry_jitter":{"value":"0.5","from":"stela.toml:5"})"));
  EXPECT_THAT(shown, HasSubstr(R"("nats.stream":{"value":"SHOP","from":"--set"})"));
  EXPECT_THAT(shown, HasSubstr(R"("outbox.lease_renew":{"value":"6s","from":"default"})"));
}

TEST_F(ToolConfig, NamesAnErrorAndItsPlace) {
  struct Case {
    const char* file;
    const char* problem;
  };
  const Case cases[] = {
      {"[outbox]\nlease_tll = 3\n",
       "stela.toml:2: there is no setting 'outbox.lease_tll'. Did you mean 'outbox.lease_ttl'?"},
      {"[outbox]\nlease_ttl = \"15 parsecs\"\n",
       "stela.toml:2: outbox.lease_ttl is a time with its unit, such as"},
      {"[outbox]\nlease_ttl = 30\n", "7s, 7m, 7h or 7d, not '30'"},
      {"[outbox]\nbatch_size = 0\n", "outbox.batch_size is a whole number from 1 to 10000,"},
      {"[outbox]\nbatch_size = [1]\n", "is neither a text nor a number nor true or false"},
      {"db = \n", "stela.toml:1: "},
      {"[nats]\nurl = \"nats://ada:secret@host\"\n", "secrets come from files"},
      {"[outbox]\non_poison = \"explode\"\n", "is one of park|halt|skip"},
  };
  for (const Case& c : cases) {
    write(c.file);
    const Ran ran = run({"config", "show"}, here());
    EXPECT_EQ(ran.code, 2) << c.file;
    EXPECT_THAT(ran.err, HasSubstr(c.problem));
  }
}

TEST_F(ToolConfig, ShowsNoPasswordOfABrokerHoweverItsUrlIsMistyped) {
  for (const char* const url : {"nats://ada:secret%40host", "ada:secret%40host:4222",
                                "nats:ada:secret", "nats://secret%40host"}) {
    write("[nats]\nurl = \"" + std::string{url} + "\"\n");

    const Ran ran = run({"config", "show"}, here());

    EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("secret"))) << url;
    EXPECT_THAT(ran.out + ran.err, HasSubstr("***")) << url;
  }
  write("[nats]\nurl = \"nats://one:4222,two\"\n");
  EXPECT_THAT(run_well({"config", "show"}, here()), HasSubstr("nats://one:4222,two"));
}

TEST_F(ToolConfig, ShowsWhereSettingsThatContradictEachOtherComeFrom) {
  write("[outbox]\nlease_ttl = \"3s\"\nlease_renew = \"2s\"\n");

  const Ran ran = run({"config", "show", "--json"}, here());

  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("lease_renew (2000 ms) must be less than half of lease_ttl"));
  EXPECT_THAT(ran.out, HasSubstr(R"("outbox.lease_renew":{"value":"2s","from":"stela.toml:3"})"));
}

TEST_F(ToolConfig, RefusesVariablesThatLookMistyped) {
  RunOptions options = here();
  options.environment = {{"STELA_NATS_ULR", "nats://x"}};
  const Ran ran = run({"config", "show"}, options);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("Did you mean 'STELA_NATS_URL'?"));

  options.environment = {{"STELA_SOMETHING_OF_ANOTHER_PROGRAM", "1"}};
  EXPECT_EQ(run({"config", "show"}, options).code, 0);
}

TEST_F(ToolConfig, NamedFileMustBeThere) {
  const Ran ran = run({"config", "show", "--config", "nowhere.toml"}, here());
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("nowhere.toml can't be read"));
}

TEST_F(ToolConfig, SaysThatAFolderIsNoFile) {
  std::filesystem::create_directory(dir_.file("folder"));
  const Ran ran = run({"config", "show", "--config", "folder"}, here());
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("can't be read: it is a folder"));
}

}  // namespace
}  // namespace stela::test
