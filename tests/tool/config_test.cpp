#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>

namespace stela::test::config_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ToolConfig : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream{dir_.file("stela.toml")} << text; }
  /// Written, with this mode; as root also given to this user.
  void write(const std::string& text, mode_t mode, uid_t owner) {
    write(text);
    ASSERT_EQ(chmod(dir_.file("stela.toml").c_str(), mode), 0);
    if (geteuid() != 0) return;
    ASSERT_EQ(chown(dir_.file("stela.toml").c_str(), owner, owner), 0);
  }
  RunOptions here() const { return {.folder = dir_.path().string()}; }

  TempDir dir_;
};

TEST_F(ToolConfig, FlagsWinOverTheEnvironmentOverTheFile) {
  write("db = \"file.db\"\n[outbox]\nlease_ttl = \"30s\"\nbatch_size = 7\nretry_jitter = 0.5\n");
  RunOptions options = here();
  options.environment = {{"STELA_OUTBOX_BATCH_SIZE", "8"}, {"STELA_DB", "variable.db"}};

  const std::string shown = run_well(
      {"config", "show", "--json", "--db", "flag.db", "--set", "nats.stream=SHOP"}, options);

  EXPECT_THAT(shown, HasSubstr(R"({"setting":"db","value":"flag.db","from":"--db"})"));
  EXPECT_THAT(
      shown,
      HasSubstr(R"({"setting":"outbox.batch_size","value":"8","from":"STELA_OUTBOX_BATCH_SIZE"})"));
  EXPECT_THAT(shown,
              HasSubstr(R"({"setting":"outbox.lease_ttl","value":"30s","from":"stela.toml:3"})"));
  EXPECT_THAT(
      shown, HasSubstr(R"({"setting":"outbox.retry_jitter","value":"0.5","from":"stela.toml:5"})"));
  EXPECT_THAT(shown, HasSubstr(R"({"setting":"nats.stream","value":"SHOP","from":"--set"})"));
  EXPECT_THAT(shown,
              HasSubstr(R"({"setting":"outbox.lease_renew","value":"6s","from":"default"})"));
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
      {"[outbox]\non_poison = \"explode\"\n", "is one of park|stop|skip"},
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
  EXPECT_THAT(ran.out,
              HasSubstr(R"({"setting":"outbox.lease_renew","value":"2s","from":"stela.toml:3"})"));
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

constexpr uid_t another = 65'533;
/// Who `run_unprivileged` is.
constexpr uid_t nobody = 65'534;
constexpr const char* shop_toml = "[nats]\nuser = \"shop\"\npassword_file = \"/etc/shadow\"\n";

TEST_F(ToolConfig, RefusesAFileThatOthersMayWrite) {
  for (const mode_t mode : {0646, 0664, 0622}) {
    write(shop_toml, mode, geteuid());
    const Ran ran = run({"config", "show"}, here());
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("stela.toml can be written by others (mode 0"));
    EXPECT_THAT(ran.err, HasSubstr("'chmod go-w' makes it safe"));
  }

  ASSERT_EQ(system(("chmod go-w " + dir_.file("stela.toml")).c_str()), 0);

  EXPECT_EQ(run({"config", "show"}, here()).code, 0);
}

TEST_F(ToolConfig, RefusesAFileOfAnotherUserThoughALinkOfOnesOwnLeadsThere) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  write(shop_toml, 0644, another);
  // A folder as /tmp is.
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  std::filesystem::create_symlink("stela.toml", dir_.file("link.toml"));

  for (const char* const name : {"stela.toml", "link.toml"}) {
    for (const Ran& ran : {run({"config", "show", "--config", name}, here()),
                           run_unprivileged({"config", "show", "--config", name}, here())}) {
      EXPECT_EQ(ran.code, 2) << name;
      EXPECT_THAT(ran.err, HasSubstr("belongs to another user (uid 65533)"));
    }
  }
  const Ran found = run({"config", "show"}, here());
  EXPECT_EQ(found.code, 2);
  EXPECT_THAT(found.err, HasSubstr("name a copy of your own with --config; '--config /dev/null' "));

  std::filesystem::copy_file(dir_.file("stela.toml"), dir_.file("copy.toml"));
  EXPECT_EQ(run({"config", "show", "--config", "copy.toml"}, here()).code, 0);
  EXPECT_EQ(run({"config", "show", "--config", "/dev/null"}, here()).code, 0);
}

TEST_F(ToolConfig, TrustsTheNullDeviceWhoeverOwnsIt) {
  // In a container without root's rights it belongs to nobody.
  const std::string device = dir_.file("null");
  if (mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "only root can make a device";
  }
  ASSERT_EQ(chown(device.c_str(), another, another), 0);
  ASSERT_EQ(chmod(device.c_str(), 0666), 0);

  for (const std::string& path : {device, std::string{"/dev/null"}}) {
    const Ran ran = run({"config", "show", "--config", path}, here());
    EXPECT_EQ(ran.code, 0) << path << ": " << ran.err;
  }
}

TEST_F(ToolConfig, ReadsNoOtherDevice) {
  std::filesystem::create_symlink("/dev/zero", dir_.file("stela.toml"));
  const std::vector<std::string> calls[] = {{"config", "show"},
                                            {"config", "show", "--config", "/dev/zero"}};
  for (const std::vector<std::string>& words : calls) {
    const Ran ran = run(words, here());
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.err, HasSubstr("can't be read: it is no regular file"));
  }
}

TEST_F(ToolConfig, RefusesAFileOfMoreThanAMebibyte) {
  write("db = \"file.db\"\n");
  std::filesystem::resize_file(dir_.file("stela.toml"), std::uintmax_t{4} << 30);
  const Ran ran = run({"config", "show"}, here());
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("stela.toml is larger than 1 MiB"));

  write("db = \"file.db\"\n#" + std::string(1'000'000, 'x') + "\n");
  EXPECT_THAT(run_well({"config", "show"}, here()), HasSubstr("file.db"));
}

TEST_F(ToolConfig, TrustsFilesOfTheUserAndOfRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  for (const uid_t owner : {uid_t{0}, nobody}) {
    write(shop_toml, 0644, owner);
    const Ran ran = run_unprivileged({"config", "show"}, here());
    EXPECT_EQ(ran.code, 0) << owner << ": " << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("/etc/shadow")) << "it was read";
  }
  write(shop_toml, 0646, 0);
  const Ran writable = run_unprivileged({"config", "show"}, here());
  EXPECT_EQ(writable.code, 2);
  EXPECT_THAT(writable.err, HasSubstr("name a copy of your own with --config"));
  write(shop_toml, 0644, nobody);
  EXPECT_EQ(run({"config", "show"}, here()).code, 2) << "root follows nobody else";
}

TEST_F(ToolConfig, SaysWhatToDoAboutASecretThatOthersMayRead) {
  std::ofstream{dir_.file("token")} << "t";
  ASSERT_EQ(chmod(dir_.file("token").c_str(), 0644), 0);
  ASSERT_EQ(run({"migrate", "--db", "shop.db"}, here()).code, 0);
  ASSERT_EQ(run({"outbox", "enable", "--db", "shop.db"}, here()).code, 0);
  const std::vector<std::string> work{"outbox",
                                      "work",
                                      "--db",
                                      "shop.db",
                                      "--once",
                                      "--set",
                                      "nats.token_file=token",
                                      "--nats",
                                      "nats://127.0.0.1:1"};

  const Ran refused = run(work, here());
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("token_file: others can read the file token (mode 0644)"));
  EXPECT_THAT(refused.err, HasSubstr("chmod 600 token"));

  ASSERT_EQ(system(("chmod 600 " + dir_.file("token")).c_str()), 0);
  EXPECT_EQ(run(work, here()).code, 4) << "nobody listens there";
}

TEST_F(ToolConfig, NamedFileMustBeThere) {
  const Ran ran = run({"config", "show", "--config", "nowhere.toml"}, here());
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("nowhere.toml can't be read"));
}

TEST_F(ToolConfig, WaitsForNobodyWhoWouldWriteToAPipe) {
  for (const char* const name : {"stela.toml", "token"}) {
    ASSERT_EQ(mkfifo(dir_.file(name).c_str(), 0600), 0);
  }
  const std::vector<std::string> calls[] = {{"config", "show"},
                                            {"config", "show", "--config", "stela.toml"}};
  for (const std::vector<std::string>& words : calls) {
    const Ran ran = run(words, here());
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.err, HasSubstr("stela.toml can't be read: it is no regular file"));
  }

  std::filesystem::remove(dir_.file("stela.toml"));
  ASSERT_EQ(run({"migrate", "--db", "shop.db"}, here()).code, 0);
  ASSERT_EQ(run({"outbox", "enable", "--db", "shop.db"}, here()).code, 0);
  const Ran ran = run({"outbox", "work", "--db", "shop.db", "--once", "--set",
                       "nats.token_file=token", "--nats", "nats://127.0.0.1:1"},
                      here());
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("token_file: token isn't a regular file"));
}

TEST_F(ToolConfig, SaysThatAFolderIsNoFile) {
  std::filesystem::create_directory(dir_.file("folder"));
  const Ran ran = run({"config", "show", "--config", "folder"}, here());
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("can't be read: it is a folder"));
}

}  // namespace
}  // namespace stela::test::config_test
