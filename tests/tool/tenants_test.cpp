// stela tenants, and other commands with --tenant.
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace stela::test::tenants_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ToolTenants : public ::testing::Test {
 protected:
  void SetUp() override {
    well({"tenants", "init", "--at", "data/{tenant}.db"});
    well({"tenants", "create", "acme", "globex"});
  }
  RunOptions here() const { return {.environment = {{"STELA_TENANTS", dir_.file("tenants.db")}}}; }
  Ran tenant(const std::vector<std::string>& arguments) { return run(arguments, here()); }
  std::string well(const std::vector<std::string>& arguments) {
    return run_well(arguments, here());
  }
  Ran append(const std::string& tenant_name) {
    return tenant({"events", "append", "--stream", "order-1", "--type", "order.placed", "--publish",
                   "--data", "{}", "--tenant", tenant_name});
  }
  std::string state(const std::string& name) {
    for (const std::string& line : lines_of(well({"tenants", "list", "--json"}))) {
      if (member(line, "tenant") == name) return member(line, "state");
    }
    return {};
  }

  TempDir dir_ = TempDir::in_memory();
};

TEST_F(ToolTenants, AreListedAndAsked) {
  EXPECT_EQ(append("acme").code, 0);
  EXPECT_THAT(lines_of(well({"tenants", "list", "--json"})), SizeIs(2));
  const auto asked = lines_of(well({"tenants", "status", "--json"}));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(member(asked[0], "tenant"), "acme");
  EXPECT_EQ(member(asked[0], "events"), "1");
  EXPECT_EQ(member(asked[1], "events"), "0");
  std::filesystem::remove(dir_.file("data/globex.db"));
  const Ran broken = tenant({"tenants", "status"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.out, HasSubstr("there is no database"));
  EXPECT_THAT(broken.err, HasSubstr("2 tenants asked, 1 answered, 1 with trouble."));
}

TEST_F(ToolTenants, NameTheDatabaseOfOtherCommands) {
  EXPECT_EQ(append("acme").code, 0);
  EXPECT_THAT(well({"streams", "list", "--tenant", "acme"}), HasSubstr("order-1"));
  EXPECT_EQ(well({"streams", "list", "--tenant", "globex", "--json"}), "");
  const Ran unknown = tenant({"streams", "list", "--tenant", "initech"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err,
              HasSubstr("there is no tenant 'initech'; 'tenants list' names them all"));
  EXPECT_EQ(tenant({"streams", "list", "--tenant", "acme", "--db", "x.db"}).code, 2);
  EXPECT_THAT(run({"streams", "list", "--tenant", "acme"}, {}).err, HasSubstr("which registry?"));
}

TEST_F(ToolTenants, AreRefusedInAnothersPlace) {
  EXPECT_EQ(append("acme").code, 0);
  std::filesystem::copy_file(dir_.file("data/acme.db"), dir_.file("data/globex.db"),
                             std::filesystem::copy_options::overwrite_existing);
  for (const char* const command : {"list", "head"}) {
    const Ran ran = tenant({"events", command, "--tenant", "globex"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("another store stands in the place of tenant 'globex'"));
  }
  EXPECT_EQ(tenant({"migrate", "--tenant", "acme"}).code, 2);
}

TEST_F(ToolTenants, AreSuspendedAndResumed) {
  EXPECT_EQ(tenant({"tenants", "suspend", "acme"}).code, 2) << "without a reason";
  well({"tenants", "suspend", "acme", "--reason", "unpaid"});
  EXPECT_EQ(state("acme"), "suspended");
  const Ran refused = append("acme");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("tenant 'acme' is suspended since"), HasSubstr("unpaid")));
  EXPECT_THAT(tenant({"doctor", "--tenant", "acme"}).out,
              AllOf(HasSubstr("the store is that of tenant acme, of the registry "),
                    HasSubstr("refused: tenant 'acme'")));
  well({"tenants", "resume", "acme"});
  EXPECT_EQ(append("acme").code, 0);
}

TEST_F(ToolTenants, AreErasedIfTheNameIsTypedAgain) {
  EXPECT_THAT(tenant({"tenants", "erase", "acme", "--confirm", "acme"}).err,
              HasSubstr("drop it first"));
  well({"tenants", "drop", "acme", "--reason", "left", "--grace", "1h"});
  EXPECT_THAT(tenant({"tenants", "erase", "acme", "--confirm", "acme"}).err,
              HasSubstr("isn't erased before"));
  well({"tenants", "resume", "acme"});
  well({"tenants", "drop", "acme", "--reason", "left", "--grace", "0s"});
  EXPECT_EQ(tenant({"tenants", "erase", "acme", "--confirm", "acne"}).code, 2);
  EXPECT_TRUE(std::filesystem::exists(dir_.file("data/acme.db")));
  std::filesystem::rename(dir_.file("data/acme.db"), dir_.file("away.db"));
  EXPECT_THAT(tenant({"tenants", "erase", "acme", "--confirm", "acme"}).err, HasSubstr("--lost"));
  EXPECT_EQ(state("acme"), "dropped");
  std::filesystem::rename(dir_.file("away.db"), dir_.file("data/acme.db"));
  std::filesystem::remove(dir_.file("data/acme.db-lock"));
  std::filesystem::create_directories(dir_.file("data/acme.db-lock/full"));
  EXPECT_EQ(tenant({"tenants", "erase", "acme", "--confirm", "acme"}).code, 1);
  EXPECT_THAT(tenant({"tenants", "status"}).out, HasSubstr("repeat 'tenants erase'"));
  std::filesystem::remove_all(dir_.file("data/acme.db-lock"));
  well({"tenants", "erase", "acme", "--confirm", "acme"});
  EXPECT_FALSE(std::filesystem::exists(dir_.file("data/acme.db")));
  EXPECT_EQ(state("acme"), "erased");
  EXPECT_EQ(append("acme").code, 3);
  std::filesystem::remove(dir_.file("data/globex.db"));
  EXPECT_THAT(tenant({"tenants", "drop", "globex", "--reason", "left", "--grace", "0s"}).err,
              HasSubstr("the registry has the change, and the store doesn't"));
  well({"tenants", "erase", "globex", "--confirm", "globex", "--lost"});
}

TEST_F(ToolTenants, MoveToAnotherRegistry) {
  EXPECT_EQ(append("acme").code, 0);
  const std::string file = dir_.file("acme.export");
  well({"export", file, "--whole", "--tenant", "acme"});
  std::filesystem::create_directories(dir_.file("second/data"));
  const RunOptions there{.environment = {{"STELA_TENANTS", dir_.file("second/tenants.db")}}};
  run_well({"tenants", "init", "--at", "data/{tenant}.db"}, there);
  run_well({"migrate", "--db", dir_.file("second/data/acme.db")});
  run_well({"import", file, "--db", dir_.file("second/data/acme.db")});
  EXPECT_THAT(run({"tenants", "adopt"}, there).err, HasSubstr("Nothing to adopt"));
  run_well({"tenants", "adopt", "acme"}, there);
  EXPECT_THAT(run_well({"streams", "list", "--tenant", "acme"}, there), HasSubstr("order-1"));
  // An import that was cut off before is completed.
  EXPECT_EQ(append("acme").code, 0);
  const std::string all = dir_.file("all.export");
  well({"export", all, "--whole", "--tenant", "acme"});
  run_well({"import", all, "--tenant", "acme"}, there);
  EXPECT_THAT(lines_of(run_well({"events", "list", "--tenant", "acme", "--json"}, there)),
              SizeIs(2));
  EXPECT_THAT(tenant({"import", all, "--tenant", "globex"}).err, HasSubstr("requires 'tenant'"));
}

TEST_F(ToolTenants, GetBackWhatOnlyTheBrokerHas) {
  const NatsServer broker;
  const auto at_broker = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--nats", broker.url(), "--stream", "SHOP", "--tenant", "acme"});
    return arguments;
  };
  const auto publish = [&] {
    EXPECT_EQ(append("acme").code, 0);
    well(at_broker({"outbox", "work", "--ensure-stream", "--until-empty"}));
  };
  const std::string file = dir_.file("data/acme.db");
  well({"outbox", "enable", "--tenant", "acme"});
  publish();
  well({"backup", dir_.file("backup"), "--tenant", "acme"});
  publish();
  for (const char* const ending : {"", "-wal", "-shm"}) std::filesystem::remove(file + ending);
  std::filesystem::copy(dir_.file("backup"), file);
  const Ran noticed =
      tenant({"outbox", "work", "--once", "--nats", broker.url(), "--stream", "SHOP"});
  EXPECT_EQ(noticed.code, 1) << "though nothing is pending";
  EXPECT_THAT(noticed.out + noticed.err, HasSubstr("the broker has event 2"));
  const auto reconcile = at_broker({"outbox", "reconcile", "--from-broker", "--yes"});
  well({"tenants", "suspend", "acme", "--reason", "unpaid"});
  EXPECT_THAT(tenant(reconcile).err, HasSubstr("is suspended"));
  well({"tenants", "resume", "acme"});
  well(reconcile);
  well({"outbox", "partitions", "adopt", "all", "--yes", "--tenant", "acme"});
  EXPECT_THAT(lines_of(well({"events", "list", "--tenant", "acme", "--json"})), SizeIs(2));
  publish();
  EXPECT_THAT(well(at_broker({"outbox", "reconcile", "--against-broker", "--dry-run"})),
              HasSubstr("3 published events compared with 3 messages"));
}

TEST_F(ToolTenants, AreNoLongerUsedByARegistryThatLostThem) {
  const RunOptions others{.environment = {{"STELA_TENANTS", dir_.file("others.db")}}};
  run_well({"tenants", "init", "--at", "data/{tenant}.db"}, others);
  EXPECT_THAT(run({"tenants", "adopt"}, others).err,
              AllOf(HasSubstr("--take-over"), HasSubstr("Nothing to adopt.")));
  run_well({"tenants", "adopt", "--take-over"}, others);
  const Ran refused = append("acme");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("another registry has taken it over"));
  well({"tenants", "adopt", "acme", "--take-over"});
  EXPECT_EQ(append("acme").code, 0);
}

TEST_F(ToolTenants, AreMigratedAndRunThrough) {
  EXPECT_THAT(well({"tenants", "migrate"}), HasSubstr("2 tenants up to date, 0 failed."));
  const std::string each = well({"tenants", "each", "--", "verify"});
  EXPECT_THAT(each, AllOf(HasSubstr("acme"), HasSubstr("globex"), HasSubstr("no problem")));
  EXPECT_THAT(lines_of(well({"tenants", "each", "--json", "--", "outbox", "enable"})), SizeIs(4));
}

TEST_F(ToolTenants, AreRelayedByOneWorker) {
  const NatsServer broker;
  for (const char* const name : {"acme", "globex"}) {
    well({"outbox", "enable", "--tenant", name});
    EXPECT_EQ(append(name).code, 0);
  }
  const std::vector<std::string> work{"outbox",   "work", "--nats",         broker.url(),
                                      "--stream", "SHOP", "--ensure-stream"};
  auto once = work;
  once.insert(once.end(), {"--once", "--json"});
  std::vector<std::string> done = lines_of(well(once));
  ASSERT_THAT(done, SizeIs(3));
  EXPECT_EQ(member(done[2], "answered"), "2");
  Running running{work, here()};
  EXPECT_EQ(append("acme").code, 0);
  EXPECT_TRUE(
      eventually([&] { return running.out().find("acme: 1 published") != std::string::npos; }));
  running.signal(SIGTERM);
  EXPECT_EQ(running.wait(), 0);
  EXPECT_EQ(tenant({"outbox", "work", "--workers", "2"}).code, 2);
  EXPECT_EQ(tenant({"outbox", "work", "--label", "acme", "--tenant", "acme"}).code, 2);
  EXPECT_EQ(tenant({"tenants", "list", "--tenant", "acme"}).code, 2);
}

}  // namespace
}  // namespace stela::test::tenants_test
