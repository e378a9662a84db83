// The guide to the roles of a store on PostgreSQL, followed word by word: what each role does with
// the tool, and what it is refused.
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stela::test::postgres_roles_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class ToolInRoles : public ::testing::Test {
 protected:
  ToolInRoles() {
    server_.ask("CREATE ROLE shop_reader");
    grant();
    for (const char* const role : {"shop_owner", "shop", "shop_relay", "shop_reader"}) {
      server_.ask("ALTER ROLE " + std::string{role} + " LOGIN");
    }
    well("shop_owner", {"migrate"});
    grant();
    well("shop", {"outbox", "enable"});
    for (const char* const stream : {"order-1", "order-2"}) {
      well("shop", {"events", "append", "--stream", stream, "--type", "order.placed", "--publish",
                    "--data", R"({"customer":"jane","total_cents":100})"});
    }
    well("shop_relay", work());
  }

  void grant() const {
    server_.run_script(STELA_SOURCE "/eventstore/sql/postgres/grants.sql",
                       {"owner=shop_owner", "application=shop", "relay=shop_relay"});
    server_.ask(
        "GRANT USAGE ON SCHEMA stela, stela_app TO shop_reader; "
        "GRANT SELECT ON ALL TABLES IN SCHEMA stela, stela_app TO shop_reader; "
        "GRANT SELECT ON ALL SEQUENCES IN SCHEMA stela TO shop_reader; "
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA stela TO shop_reader");
  }
  Ran run_as(const std::string& role, const Words& words, RunOptions options = {}) const {
    options.environment.emplace("STELA_DB", server_.url("postgres", role));
    return run(words, options);
  }
  std::string well(const std::string& role, const Words& words,
                   const RunOptions& options = {}) const {
    const Ran ran = run_as(role, words, options);
    EXPECT_EQ(ran.code, 0) << role << ::testing::PrintToString(words) << ran.err << ran.out;
    return ran.out;
  }
  Words work() const {
    return {"outbox", "work",      "--once",   "--ensure-stream",
            "--nats", nats_.url(), "--stream", "SHOP"};
  }

  NatsServer nats_;
  PostgresServer server_{{.durable = true}};
};

TEST_F(ToolInRoles, DoesWhatTheGuideSays) {
  EXPECT_EQ(member(well("shop_reader", {"outbox", "status", "--json"}), "published"), "2");
  well("shop_relay", {"outbox", "partitions", "resize", "2"});
  well("shop_relay", {"outbox", "republish", "--from", "1", "--to", "1", "--yes"});
  well("shop_relay", {"outbox", "reconcile"});
  well("shop", {"outbox", "reconcile"});
  well("shop", {"timers", "hold"});
  well("shop", {"timers", "resume", "--yes"});
  well("shop", {"append-ids", "purge", "--older-than", "1d", "--yes"});
  well("shop", {"snapshots", "drop", "--all", "--yes"});
  well("shop", {"import"}, {.input = well("shop_reader", {"export"})});
  const RunOptions application{.program = STELA_EMBEDDING};
  well("shop_owner", {"projections", "rebuild"}, application);
  well("shop_owner", {"projections", "replay", "--stream", "order-1"}, application);
  EXPECT_THAT(well("shop_reader", {"projections", "status"}), HasSubstr("customers"));
  well("shop_owner", {"migrate"});
  well("shop_owner", {"verify"});
}

TEST_F(ToolInRoles, LetsTheReaderReadEverything) {
  const std::vector<Words> table{{"events", "list"},
                                 {"events", "show", "1"},
                                 {"events", "stats"},
                                 {"events", "head"},
                                 {"streams", "list"},
                                 {"streams", "show", "order-1"},
                                 {"snapshots", "list"},
                                 {"tags", "types"},
                                 {"tags", "list"},
                                 {"outbox", "status"},
                                 {"outbox", "list"},
                                 {"outbox", "show", "1"},
                                 {"outbox", "workers"},
                                 {"outbox", "partitions", "list"},
                                 {"projections", "status"},
                                 {"projections", "list"},
                                 {"timers", "list"},
                                 {"timers", "log"},
                                 {"timers", "check"},
                                 {"processes", "list"},
                                 {"inbox", "status"},
                                 {"inbox", "list"},
                                 {"inbox", "gaps"},
                                 {"inbox", "check"},
                                 {"verify"},
                                 {"export"},
                                 {"export", "--whole"},
                                 {"doctor"},
                                 {"outbox", "reconcile", "--dry-run"},
                                 {"outbox", "check", "--min-workers", "0"}};
  for (const Words& words : table) well("shop_reader", words);
}

TEST_F(ToolInRoles, FindsNothingWrongWithThem) {
  for (const std::string role : {"shop_owner", "shop", "shop_relay", "shop_reader"}) {
    const std::string found = well(role, {"doctor"});
    EXPECT_THAT(found, AllOf(HasSubstr("ok       rights: role '" + role + "' may read"),
                             HasSubstr("ok       writing: "), Not(HasSubstr("lacks"))));
  }
  EXPECT_THAT(well("shop_reader", {"doctor"}), HasSubstr("role 'shop_reader' appends nothing"));
  EXPECT_THAT(well("shop_relay", {"doctor"}), HasSubstr("may read and relay"));
}

TEST_F(ToolInRoles, RefusesWhatTheyMayNot) {
  const Words append{"events", "append",       "--stream", "order-1",
                     "--type", "order.placed", "--data",   "{}"};
  const std::vector<std::pair<std::string, Words>> table{
      {"shop_reader", append},
      {"shop_relay", append},
      {"shop_reader", {"outbox", "partitions", "resize", "3"}},
      {"shop_reader", {"outbox", "republish", "--from", "1", "--yes"}},
      {"shop_reader", {"timers", "hold"}},
      {"shop_relay", {"timers", "hold"}},
      {"shop_reader", {"tags", "forget", "--type", "a.b", "--category", "c", "--yes"}},
      {"shop_reader", work()},
      {"shop_reader", {"outbox", "work", "--until-empty", "--nats", nats_.url(), "--stream", "S"}}};
  for (const auto& [role, words] : table) {
    const Ran ran = run_as(role, words);
    EXPECT_EQ(ran.code, 1) << role << ::testing::PrintToString(words) << ran.out;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("permission denied"), HasSubstr("GRANT"))) << role;
  }
  for (const char* const role : {"shop", "shop_relay", "shop_reader"}) {
    const Ran ran = run_as(role, {"projections", "rebuild"}, {.program = STELA_EMBEDDING});
    EXPECT_EQ(ran.code, 1) << role;
    EXPECT_THAT(ran.err, HasSubstr("permission denied")) << role;
  }
}

TEST_F(ToolInRoles, MakesTablesForTheirOwnerAlone) {
  server_.ask("DROP SCHEMA stela CASCADE");
  grant();
  for (const std::string role : {"shop", "shop_relay", "shop_reader"}) {
    const Ran ran = run_as(role, {"migrate"});
    EXPECT_EQ(ran.code, 1) << role;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("only 'shop_owner'"), HasSubstr("run 'stela migrate' as")))
        << role;
  }
  // A superuser makes them for it.
  well("postgres", {"migrate"});
  EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'stela' "
                        "AND tableowner <> 'shop_owner'"),
            "0");
}

TEST_F(ToolInRoles, NamesTheRightsThatAScriptOfOldLeavesOut) {
  server_.ask("REVOKE INSERT ON stela.streams FROM shop");
  const std::string found = well("shop", {"doctor"});
  EXPECT_THAT(found, AllOf(HasSubstr("warning  rights: role 'shop' lacks INSERT on streams"),
                           HasSubstr("run grants.sql again")));
  server_.ask("REVOKE SELECT ON stela.inbox_parked FROM shop_reader");
  EXPECT_THAT(run_as("shop_reader", {"doctor"}).out, HasSubstr("lacks SELECT on inbox_parked"));
  server_.ask("GRANT INSERT ON stela.streams TO shop; REVOKE USAGE ON SCHEMA stela_app FROM shop");
  EXPECT_THAT(well("shop", {"doctor"}), HasSubstr("lacks USAGE on schema stela_app\n"));
}

TEST_F(ToolInRoles, AReaderOfAnOlderGrantIsToldWhatItCannotSee) {
  server_.ask("REVOKE SELECT ON stela.stela_acknowledged FROM shop_reader");
  const Ran checked = run_as("shop_reader", {"check"});
  EXPECT_EQ(checked.code, 1) << checked.out;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("its known findings can't be asked: "),
                                 HasSubstr("permission denied for table stela_acknowledged")));
}

}  // namespace
}  // namespace stela::test::postgres_roles_test
