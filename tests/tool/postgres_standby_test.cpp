// The commands on a standby, and on servers and as roles whose transactions only read.
#include "support/nats_server.hpp"
#include "support/postgres_pair.hpp"
#include "support/process.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::test::postgres_standby_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Ran run_on(const std::string& url, Words words, const RunOptions& options = {}) {
  words.insert(words.end(), {"--db", url});
  return run(words, options);
}
void make_shop(const std::string& url) {
  EXPECT_EQ(run_on(url, {"migrate"}).code, 0);
  EXPECT_EQ(run_on(url, {"outbox", "enable"}).code, 0);
  for (const char* const stream : {"order-1", "order-2"}) {
    EXPECT_EQ(run_on(url, {"events", "append", "--stream", stream, "--type", "order.placed",
                           "--publish", "--data", "{}"})
                  .code,
              0);
  }
}

TEST(ToolWithStandbys, NoticesThatTheSynchronousOneIsMissing) {
  PostgresPair pair;
  PostgresServer& primary = pair.primary();
  make_shop(primary.url());
  // Outside of pg_monitor.
  primary.ask(
      "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA stela TO app; "
      "GRANT SELECT ON ALL TABLES IN SCHEMA stela TO app");
  const std::string url = primary.url("postgres", "app");
  pair.make_synchronous();
  const auto says = [&] { return run_on(url, {"outbox", "check"}).out; };
  EXPECT_THAT(says(), Not(HasSubstr("commits wait")));

  // Another one stays connected.
  primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (elsewhere)'");
  primary.ask("SELECT pg_reload_conf()");
  const std::string problem =
      "CRITICAL: commits wait for 'ANY 1 (elsewhere)', and no synchronous standby is connected";
  EXPECT_TRUE(eventually([&] { return says().starts_with(problem); })) << says();
  EXPECT_THAT(run_on(url, {"doctor"}).out, HasSubstr("critical standbys: commits wait for"));
}

/// Commands that only read, with outputs that stay the same.
const std::vector<Words> reading{
    {"events", "list"},
    {"events", "show", "2"},
    {"events", "stats"},
    {"events", "head"},
    {"events", "query", "--type", "order.placed"},
    {"events", "tail", "--limit", "2"},
    {"streams", "list"},
    {"streams", "show", "order-2"},
    {"snapshots", "list"},
    {"snapshots", "drop", "--all", "--dry-run"},
    {"tags", "list"},
    {"tags", "types"},
    {"tags", "show", "order-1"},
    {"export"},
    {"export", "--whole"},
    {"append-ids", "purge", "--older-than", "1d", "--dry-run"},
    {"outbox", "list", "--json"},
    {"outbox", "workers"},
    {"outbox", "reconcile", "--dry-run"},
    {"outbox", "retry", "--all", "--dry-run"},
    {"outbox", "republish", "--from", "1", "--dry-run"},
    {"outbox", "purge", "--older-than", "1d", "--dry-run"},
    {"outbox", "partitions", "resize", "3", "--dry-run"},
    {"projections", "status"},
    {"projections", "list"},
    {"processes", "list"},
    {"timers", "list"},
    {"timers", "log"},
    {"timers", "check"},
    {"timers", "resume", "--dry-run"},
    {"inbox", "status"},
    {"inbox", "list"},
    {"inbox", "gaps"},
    {"inbox", "check"},
    {"completion", "--values", "partitions"},
};

/// What they print for one who may write, and for one who only reads.
void expect_the_same(const std::string& writable, const std::string& only_read) {
  for (const Words& words : reading) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const Ran expected = run_on(writable, words);
    const Ran ran = run_on(only_read, words);
    EXPECT_EQ(ran.err, expected.err);
    EXPECT_EQ(ran.out, expected.out);
    EXPECT_EQ(ran.code, 0);
  }
  EXPECT_EQ(member(run_on(only_read, {"outbox", "status", "--json"}).out, "pending"), "2");
  EXPECT_THAT(run_on(only_read, {"outbox", "show", "2"}).out, HasSubstr("order-2"));
  EXPECT_THAT(run_on(only_read, {"outbox", "partitions", "list"}).out, HasSubstr("PENDING"));
  const Ran verified = run_on(only_read, {"verify"});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("2 events checked, no problem."));
}

const std::vector<Words> writing{
    {"events", "append", "--stream", "order-1", "--type", "a.b", "--data", "{}"},
    {"migrate"},
    {"import"},
    {"outbox", "enable"},
    {"outbox", "retry", "--all"},
    {"outbox", "republish", "--from", "1", "--yes"},
    {"outbox", "partitions", "resize", "3"},
    {"outbox", "work", "--once", "--nats", "nats://127.0.0.1:1", "--stream", "SHOP"},
    {"append-ids", "purge", "--older-than", "1d", "--yes"},
    {"timers", "hold"},
};

void expect_refusals(const std::string& only_read) {
  for (const Words& words : writing) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const Ran ran = run_on(only_read, words);
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("name the primary"));
    EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
  }
}

class ToolOnAStandby : public ::testing::Test {
 protected:
  ToolOnAStandby() {
    make_shop(primary_);
    pair_.catch_up();
  }

  PostgresPair pair_{{.durable = true}};
  const std::string primary_ = pair_.primary().url();
  const std::string standby_ = pair_.standby().url();
};

TEST_F(ToolOnAStandby, ReadsAsOnThePrimary) {
  expect_the_same(primary_, standby_);
}

TEST_F(ToolOnAStandby, RefusesToWriteAndNamesThePrimary) {
  expect_refusals(standby_);
}

TEST_F(ToolOnAStandby, FindsWhatIsBad) {
  EXPECT_THAT(run_on(standby_, {"check"}).out, HasSubstr("WARNING: database: it is a standby"));
  const Ran checked = run_on(standby_, {"outbox", "check"});
  EXPECT_EQ(checked.code, 2) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("messages are pending, and there is no live worker"));
  EXPECT_EQ(run_on(standby_, {"outbox", "check", "--min-workers", "0"}).code, 0);
  const Ran doctor = run_on(standby_, {"doctor"});
  EXPECT_EQ(doctor.code, 1) << doctor.err;
  EXPECT_EQ(doctor.err, "");
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("it is a standby, which only reads"),
                                HasSubstr("writing: not tried: a standby only reads"),
                                HasSubstr("messages are pending, and there is no live worker")));
}

TEST_F(ToolOnAStandby, TakesAWorkerOfThePrimaryForAliveByItsHeartbeat) {
  const NatsServer nats;
  const Running worker{{"outbox", "work", "--db", primary_, "--ensure-stream", "--nats", nats.url(),
                        "--stream", "SHOP", "--id", "one"}};
  EXPECT_TRUE(eventually([&] {
    return member(run_on(standby_, {"outbox", "status", "--json"}).out, "published") == "2";
  }));
  EXPECT_THAT(run_on(standby_, {"outbox", "workers"}).out, HasSubstr("one     yes"));
  EXPECT_EQ(run_on(standby_, {"outbox", "check"}).code, 0);
}

TEST_F(ToolOnAStandby, ReadsFromThePrimaryIfOneIsNamed) {
  pair_.cut_replication();
  EXPECT_EQ(run_on(primary_, {"events", "append", "--stream", "order-3", "--type", "order.placed",
                              "--data", "{}"})
                .code,
            0);
  const std::string both = "postgresql://postgres@/postgres?host=" + pair_.standby().folder() +
                           ',' + pair_.primary().folder();
  EXPECT_EQ(lines_of(run_on(both, {"events", "list", "--json"}).out).size(), 3U);
  pair_.primary().crash();
  EXPECT_EQ(lines_of(run_on(both, {"events", "list", "--json"}).out).size(), 2U);
  // Nothing can be appended.
  for (const std::vector<std::string>& check :
       {std::vector<std::string>{"check"}, {"outbox", "check", "--min-workers", "0"}}) {
    const Ran ran = run_on(both, check);
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.out, HasSubstr("only a standby answers, which takes no writes"));
  }
}

class ToolThatOnlyReads : public ::testing::Test {
 protected:
  ToolThatOnlyReads() { make_shop(server_.url()); }

  PostgresServer server_{{.durable = true}};
};

TEST_F(ToolThatOnlyReads, ReadsAsARoleWhoseTransactionsOnlyRead) {
  server_.ask(
      "CREATE ROLE watcher LOGIN; ALTER ROLE watcher SET default_transaction_read_only = on; "
      "GRANT USAGE ON SCHEMA stela TO watcher; GRANT INSERT ON stela.stela_runs TO watcher; "
      "GRANT SELECT ON ALL TABLES IN SCHEMA stela TO watcher; "
      "GRANT SELECT ON ALL SEQUENCES IN SCHEMA stela TO watcher");
  const std::string watcher = server_.url("postgres", "watcher");
  expect_the_same(server_.url(), watcher);
  expect_refusals(watcher);
  EXPECT_EQ(run_on(watcher, {"outbox", "check", "--min-workers", "0"}).code, 0);
  const Ran doctor = run_on(watcher, {"doctor"});
  EXPECT_THAT(doctor.out, HasSubstr("ok       writing: not tried: role 'watcher' appends nothing"));
  // Nobody has noted yet which run the server is in.
  server_.crash();
  server_.start_again();
  EXPECT_EQ(run_on(watcher, {"events", "list"}).code, 0);
}

TEST_F(ToolThatOnlyReads, ReadsADatabaseWhoseTransactionsOnlyReadAndSaysSo) {
  server_.ask("ALTER DATABASE postgres SET default_transaction_read_only = on");
  const std::string url = server_.url();
  for (const Words& words : reading) {
    if (words.back() == "check") continue;
    EXPECT_EQ(run_on(url, words).code, 0) << ::testing::PrintToString(words);
  }
  expect_refusals(url);
  const Ran checked = run_on(url, {"outbox", "check", "--min-workers", "0"});
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.out, HasSubstr("CRITICAL: nothing can be appended"));
  EXPECT_EQ(run_on(url, {"timers", "check"}).code, 2);
  EXPECT_EQ(run_on(url, {"inbox", "check"}).code, 2);
  const Ran doctor = run_on(url, {"doctor"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("critical writing: default_transaction_read_only is on"));
}

}  // namespace
}  // namespace stela::test::postgres_standby_test
