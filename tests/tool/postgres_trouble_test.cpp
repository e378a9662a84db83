// The commands while something is wrong with the PostgreSQL server or with what names it.
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

namespace stela::test {
namespace {

using namespace std::chrono_literals;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Steady = std::chrono::steady_clock;

class ToolInTrouble : public testing::Test {
 protected:
  Ran stela(std::vector<std::string> words, RunOptions options = {}) const {
    options.environment.emplace("STELA_DB", server_.url());
    return run(words, options);
  }
  std::string well(const std::vector<std::string>& words) const {
    const Ran ran = stela(words);
    EXPECT_EQ(ran.code, 0) << testing::PrintToString(words) << ran.err;
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
                                                      {"projections", "list"},
                                                      {"processes", "list"},
                                                      {"timers", "list"},
                                                      {"timers", "log"},
                                                      {"timers", "check"},
                                                      {"inbox", "status"},
                                                      {"completion", "--values", "partitions"},
                                                      {"verify"}};
  for (const auto& report : reports) {
    const auto begun = Steady::now();
    const Ran ran = stela(report);
    EXPECT_LT(Steady::now() - begun, 8s) << testing::PrintToString(report);
    EXPECT_TRUE(ran.code == 0 || ran.code == 3) << testing::PrintToString(report) << ran.err;
  }
  EXPECT_THAT(well({"events", "list"}), HasSubstr("order-1"));
  EXPECT_THAT(well({"outbox", "status"}), HasSubstr("pending    1"));
  for (const auto& check : {std::vector<std::string>{"doctor"}, {"outbox", "check"}}) {
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
    EXPECT_LT(Steady::now() - begun, 10s) << testing::PrintToString(words);
    EXPECT_EQ(ran.code, 1) << testing::PrintToString(words);
    EXPECT_THAT(ran.err, HasSubstr("synchronous_standby_names = 'db2'"));
  }
}

}  // namespace
}  // namespace stela::test
