// The commands on a store in a PostgreSQL server.
#include "support/moved.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "tool/http.hpp"
#include "tool/json_walk.hpp"
#include "tool/kept_errors.hpp"
#include "tool/program.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/outbox.hpp>
#include <stela/privacy.hpp>
#include <stela/projections/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace stela::test::postgres_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* canary = "c4n4ry";

class ToolOnPostgres : public ::testing::Test {
 protected:
  /// As the server's own program does it.
  std::string sql(const std::string& text, const std::string& database = "shop") {
    const Ran ran = run({"-X", "-q", "-A", "-t", "-c", text, server_.url(database)},
                        {.program = "/usr/bin/psql"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out.substr(0, ran.out.find('\n'));
  }
  void SetUp() override {
    sql("CREATE ROLE app LOGIN PASSWORD '" + std::string{canary} + "'", "postgres");
    sql("CREATE DATABASE shop OWNER app", "postgres");
  }
  /// With a password that nobody may see.
  std::string url(const std::string& user = "app", const std::string& password = canary) const {
    return "postgresql://" + user + ":" + password +
           "@127.0.0.1:" + std::to_string(server_.port()) + "/shop";
  }
  Ran stela(std::vector<std::string> words, RunOptions options = {}) const {
    options.environment.emplace("STELA_DB", url());
    Ran ran = run(words, options);
    EXPECT_THAT(ran.out + ran.err, Not(HasSubstr(canary)));
    return ran;
  }
  std::string well(const std::vector<std::string>& words, const RunOptions& options = {}) const {
    const Ran ran = stela(words, options);
    EXPECT_EQ(ran.code, 0) << ::testing::PrintToString(words) << ran.err;
    return ran.out;
  }
  /// Events to be published, of three streams.
  void append(int count) const {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      lines += R"({"stream":"order-)" + std::to_string(i % 3) +
               R"(","type":"order.placed","publish":true,"data":{"n":)" + std::to_string(i) +
               "}}\n";
    }
    well({"events", "append", "--stdin"}, {.input = lines});
  }
  std::vector<std::string> work(const NatsServer& nats) const {
    return {"outbox", "work",     "--until-empty", "--ensure-stream",
            "--nats", nats.url(), "--stream",      "SHOP"};
  }

  PostgresServer server_{{.tcp = true, .access = "host all app 127.0.0.1/32 scram-sha-256"}};
};

TEST_F(ToolOnPostgres, DoctorSaysWhatWritesValuesIntoTheServersLog) {
  const TempDir dir;
  well({"migrate"});
  const Keys keys = open_keys(dir.file("shop.keys.db"));
  const std::vector<std::string> doctor{"doctor", "--keys", dir.file("shop.keys.db")};
  EXPECT_THAT(stela(doctor).out, Not(HasSubstr("writes values into the server's log")));

  sql("ALTER DATABASE shop SET log_statement = 'mod'");
  sql("ALTER DATABASE shop SET log_parameter_max_length_on_error = -1");
  EXPECT_THAT(stela(doctor).out,
              HasSubstr("log_parameter_max_length_on_error = '-1', log_statement = 'mod' writes "
                        "values into the server's log"));
}

TEST_F(ToolOnPostgres, DiagnosesOverTwoConnections) {
  // One reads, and a new one tells with which settings the server would serve others.
  well({"migrate"});
  append(3);
  const auto sessions = [&] {
    return sql("SELECT sessions FROM pg_stat_database WHERE datname = 'shop'", "postgres");
  };
  const std::string before = sessions();

  stela({"check"});

  EXPECT_TRUE(eventually([&] { return sessions() != before; }));
  EXPECT_EQ(std::stoi(sessions()), std::stoi(before) + 2);
}

TEST_F(ToolOnPostgres, MakesAStoreOnlyWhenItIsAskedTo) {
  const std::string place = "app@127.0.0.1:" + std::to_string(server_.port()) + "/shop";
  const Ran before = stela({"streams", "list"});
  EXPECT_EQ(before.code, 3);
  EXPECT_THAT(before.err,
              AllOf(HasSubstr("there is no store in " + place), HasSubstr("migrate --db URL")));
  EXPECT_EQ(sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'stela'"), "0");

  EXPECT_THAT(well({"migrate", "--json"}),
              AllOf(HasSubstr(R"("path":")" + place + '"'), HasSubstr(R"("made":true)")));
  EXPECT_THAT(well({"migrate"}), HasSubstr(place + " is up to date"));
  EXPECT_EQ(well({"streams", "list", "--json"}), "");
}

TEST_F(ToolOnPostgres, TakesTheUrlFromTheFlagTheEnvironmentOrTheFile) {
  const TempDir dir;
  std::ofstream{dir.file("stela.toml")} << "db = \"" << url() << "\"\n[store]\nschema = \"mine\"\n"
                                        << "sql_schema = \"billing\"\n";
  const RunOptions here{.folder = dir.path().string()};
  const Ran shown = run({"config", "show", "--json"}, here);
  EXPECT_THAT(shown.out, AllOf(HasSubstr("postgresql://app:***@127.0.0.1"),
                               HasSubstr("stela.toml:1"), Not(HasSubstr(canary))));
  run_well({"migrate"}, here);
  EXPECT_EQ(sql("SELECT count(*) FROM pg_namespace WHERE nspname IN ('mine', 'billing')"), "2");
  run_well({"events", "list", "--db", url(), "--set", "store.schema=mine"});
  EXPECT_EQ(stela({"events", "list"}).code, 3);
}

TEST_F(ToolOnPostgres, AppendsListsAndVerifies) {
  well({"migrate"});
  append(6);
  EXPECT_THAT(well({"streams", "list"}), HasSubstr("order-2        2           6"));
  EXPECT_THAT(lines_of(well({"events", "list", "--stream", "order-1", "--json"})), SizeIs(2));
  EXPECT_THAT(well({"events", "show", "3"}), HasSubstr("order-2 at version 1"));
  EXPECT_THAT(well({"events", "stats"}), HasSubstr("6 events"));
  EXPECT_THAT(well({"verify"}), HasSubstr("6 events checked, no problem."));

  sql("ALTER TABLE stela.events DISABLE TRIGGER ALL; UPDATE stela.events SET payload = '{}' "
      "WHERE sequence = 2; ALTER TABLE stela.events ENABLE TRIGGER ALL");
  const Ran damaged = stela({"verify"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, HasSubstr("event 2: it doesn't match its checksum"));
}

TEST_F(ToolOnPostgres, ListsLookAtSoManyEventsOnly) {
  well({"migrate"});
  append(2);
  well({"events", "append", "--stream", "bill-1", "--type", "bill.sent", "--data", "{}", "--tag",
        "customer-7"});
  sql("INSERT INTO stela.events (sequence, stream, version, recorded_at, published_before, "
      "checksum, kind, event_id, payload) SELECT 3 + n, 3, 1 + n, 0, 0, 0, 2, gen_random_uuid(), "
      "'{}' FROM generate_series(1, 20000) AS n");

  const Ran none = stela({"events", "list", "--type", "order.placed", "--newest-first"});
  EXPECT_THAT(none.err, HasSubstr("none among the newest 20,000 of 20,003 events; more: --after 4, "
                                  "or --look-further"));
  EXPECT_EQ(lines_of(well({"events", "list", "--type", "order.placed", "--newest-first", "--after",
                           "4", "--json"})),
            lines_of(well({"events", "list", "--type", "order.placed", "--newest-first",
                           "--look-further", "--json"})));
  EXPECT_THAT(stela({"events", "query", "--type", "order.paid", "--limit", "1"}).err,
              HasSubstr("none among the first 20,000 of 20,003 events; more: --after 20000"));
  EXPECT_EQ(stela({"tags", "show", "customer-7", "--type", "order.placed"}).code, 3);
  EXPECT_THAT(lines_of(well({"tags", "show", "customer-7", "--type", "bill.sent", "--json"})),
              SizeIs(1));
}

TEST_F(ToolOnPostgres, ListsBeginAtEitherEnd) {
  well({"migrate"});
  well({"outbox", "enable"});
  append(6);
  const std::string newest = well({"outbox", "list", "--newest-first", "--limit", "1", "--json"});
  EXPECT_EQ(member(newest, "sequence"), "6");
  EXPECT_THAT(lines_of(well({"outbox", "list", "--newest-first", "--after", "3", "--json"})),
              SizeIs(2));
  EXPECT_THAT(lines_of(well({"outbox", "list", "--type", "order.placed", "--json"})), SizeIs(6));
  EXPECT_EQ(well({"outbox", "list", "--state", "in_flight", "--json"}), "");
  EXPECT_THAT(lines_of(well({"outbox", "list", "--stream", "order-1", "--since", "1h", "--json"})),
              SizeIs(2));
}

TEST_F(ToolOnPostgres, RelaysParksRetriesAndDiscards) {
  const NatsServer nats{"max_payload: 2000"};
  well({"migrate"});
  well({"outbox", "enable"});
  append(4);
  const std::string large(3000, 'x');
  for (const std::string& text : {large, std::string{"small"}}) {
    well({"events", "append", "--stream", "order-9", "--type", "order.placed", "--publish",
          "--data", R"({"x":")" + text + "\"}"});
  }
  EXPECT_THAT(well({"outbox", "status"}), HasSubstr("pending    6"));
  well(work(nats));
  EXPECT_THAT(well({"outbox", "status"}), HasSubstr("parked     2"));
  EXPECT_THAT(well({"outbox", "show", "5"}), HasSubstr("reason       refused"));
  EXPECT_EQ(member(well({"outbox", "retry", "--all", "--json"}), "messages"), "2");
  well(work(nats));
  EXPECT_EQ(member(well({"outbox", "status", "--json"}), "parked"), "2");

  well({"outbox", "discard", "5", "--yes"});
  well(work(nats));
  EXPECT_EQ(member(well({"outbox", "status", "--json"}), "published"), "5");
  well({"outbox", "republish", "--from", "1", "--to", "2", "--yes"});
  well(work(nats));
  EXPECT_THAT(well({"outbox", "reconcile", "--against-broker", "--dry-run", "--nats", nats.url(),
                    "--stream", "SHOP"}),
              AllOf(HasSubstr("5 published events compared with 7 messages"),
                    HasSubstr("None is missing")));
  const Ran check = stela({"outbox", "check", "--json"});
  EXPECT_EQ(check.code, 0);
  EXPECT_THAT(check.out, AllOf(HasSubstr("standby_lag"), HasSubstr("open_transaction")));
  EXPECT_THAT(well({"verify"}), HasSubstr("no problem"));
}

TEST_F(ToolOnPostgres, SpreadsTheOutboxOverPartitions) {
  const NatsServer nats;
  well({"migrate"});
  well({"outbox", "enable"});
  append(3);
  EXPECT_THAT(well({"outbox", "partitions", "resize", "4"}), HasSubstr("From 1 to 4 partitions"));
  append(6);
  well(work(nats));
  EXPECT_THAT(well({"outbox", "partitions", "sync", "--prune"}), HasSubstr("retired: all"));
  EXPECT_THAT(well({"outbox", "partitions", "list"}), HasSubstr("p03"));
  EXPECT_EQ(well({"completion", "--values", "partitions"}), "p00\np01\np02\np03\n");
  EXPECT_THAT(well({"outbox", "reconcile"}), HasSubstr("9 publishable events checked"));
  EXPECT_THAT(well({"outbox", "purge", "--older-than", "7d", "--yes"}),
              HasSubstr("Removed 0 batches"));
  EXPECT_THAT(well({"verify"}), HasSubstr("no problem"));
}

TEST_F(ToolOnPostgres, ShowsTheOutboxWhileAWorkerRuns) {
  const NatsServer nats;
  well({"migrate"});
  well({"outbox", "enable"});
  append(3);
  const TempDir dir;
  Running worker{{"outbox", "work", "--db", url(), "--ensure-stream", "--nats", nats.url(),
                  "--stream", "SHOP", "--metrics-file", dir.file("metrics.prom"), "--id", "one"}};
  eventually([&] { return member(well({"outbox", "status", "--json"}), "published") == "3"; });
  EXPECT_THAT(well({"outbox", "workers"}), HasSubstr("one"));
  Running top{{"outbox", "top", "--db", url()}, {.in_terminal = true}};
  eventually([&] { return top.out().find("app@127.0.0.1/shop") != std::string::npos; });
  Running watch{{"outbox", "status", "--watch", "1s", "--db", url()}};
  eventually([&] { return watch.out().find("published 3") != std::string::npos; });
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(well({"outbox", "workers"}), Not(HasSubstr("one")));
  std::ifstream metrics{dir.file("metrics.prom")};
  const std::string page{std::istreambuf_iterator<char>{metrics}, {}};
  EXPECT_THAT(page, HasSubstr("stela_outbox_published_total"));
  EXPECT_THAT(page + worker.err() + worker.out() + top.out() + watch.out(), Not(HasSubstr(canary)));
}

TEST_F(ToolOnPostgres, TakesTheFilesPlaceAndGivesItBack) {
  const TempDir dir;
  const std::string file = dir.file("shop.db");
  run_well({"migrate", "--db", file});
  run_well({"outbox", "enable", "--db", file});
  for (int i = 0; i < 3; ++i) {
    run_well({"events", "append", "--db", file, "--stream", "order-1", "--type", "order.placed",
              "--publish", "--data", "{}"});
  }
  well({"migrate"});
  const std::string exported = run_well({"export", "--whole", "--db", file});
  EXPECT_THAT(well({"import"}, {.input = exported}),
              HasSubstr("3 events imported, 0 were there already. Also 0 append ids and"));
  EXPECT_THAT(well({"outbox", "status"}), HasSubstr("pending    3"));
  EXPECT_THAT(stela({"import"}, {.input = exported}).err, HasSubstr("has an outbox already"));
  EXPECT_THAT(well({"verify"}), HasSubstr("no problem"));

  const std::string back = dir.file("back.db");
  run_well({"migrate", "--db", back});
  run_well({"import", "--db", back}, {.input = well({"export", "--whole"})});
  EXPECT_EQ(run_well({"export", "--db", back}), run_well({"export", "--db", file}));
  EXPECT_THAT(run_well({"outbox", "status", "--db", back}), HasSubstr("pending    3"));
  EXPECT_EQ(stela({"export", "--whole", "--from", "2"}).code, 2);
}

TEST_F(ToolOnPostgres, LeavesBackupsAndCheckpointsToTheServer) {
  well({"migrate"});
  EXPECT_THAT(stela({"backup", "copy.db"}).err, HasSubstr("pg_basebackup"));
  EXPECT_THAT(stela({"checkpoint"}).err, HasSubstr("makes its checkpoints itself"));
  EXPECT_THAT(stela({"migrate", "--durability", "full"}).err, HasSubstr("are for SQLite"));
}

TEST_F(ToolOnPostgres, DoctorLooksAtTheServer) {
  well({"migrate"});
  well({"outbox", "enable"});
  const Ran off = stela({"doctor"});
  EXPECT_EQ(off.code, 1);
  EXPECT_THAT(off.out,
              AllOf(HasSubstr("server: PostgreSQL "), HasSubstr("critical fsync: it is off"),
                    HasSubstr("standbys: none is connected"),
                    HasSubstr("rights: role 'app' may read, append, relay, consume and project")));

  sql("ALTER SYSTEM SET synchronous_standby_names = 'db2'; ");
  sql("SELECT pg_reload_conf()");
  EXPECT_THAT(run({"doctor", "--db", server_.url("shop")}).out,
              HasSubstr("no synchronous standby is connected"));
  const Ran check = stela({"outbox", "check"});
  EXPECT_EQ(check.code, 2);
  EXPECT_THAT(check.out, HasSubstr("CRITICAL: commits wait for 'db2', and no synchronous"));
}

TEST_F(ToolOnPostgres, DoctorNamesTheRightsThatARoleLacks) {
  well({"migrate"});
  well({"outbox", "enable"});
  sql("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA stela TO reader; "
      "GRANT SELECT ON ALL TABLES IN SCHEMA stela TO reader; "
      "GRANT INSERT ON stela.events TO reader; GRANT UPDATE ON stela.outbox_partitions TO reader");
  const Ran seen = run({"doctor", "--db", server_.url("shop", "reader")});
  EXPECT_THAT(seen.out, AllOf(HasSubstr("warning  rights: role 'reader' lacks"),
                              HasSubstr("INSERT on streams"), HasSubstr("UPDATE on outbox_workers"),
                              Not(HasSubstr("INSERT on events"))));
}

TEST_F(ToolOnPostgres, RefusalsSayWhatToDo) {
  well({"migrate"});
  const auto fails = [&](const std::string& database, int code) {
    const Ran ran = stela({"streams", "list", "--db", database});
    EXPECT_EQ(ran.code, code) << ran.err;
    return ran.err;
  };
  EXPECT_THAT(fails(url("app", "wr0ng"), 1),
              AllOf(HasSubstr("password authentication failed"), HasSubstr("PGPASSWORD"),
                    Not(HasSubstr("wr0ng"))));
  EXPECT_THAT(fails("postgresql://app:c4n4ry@nowhere.invalid/shop", 1),
              HasSubstr("is the host's name right?"));
  EXPECT_THAT(fails("postgresql://app:c4n4ry@127.0.0.1:1/shop", 1),
              HasSubstr("is the server running?"));
  EXPECT_THAT(fails(url() + "?sslmode=require", 1), HasSubstr("see sslmode"));
  EXPECT_THAT(fails("postgresql://app:c4n4ry/x@db/shop", 2), HasSubstr("%XX"));
  EXPECT_THAT(stela({"streams", "list", url()}).err, HasSubstr("app:***@"));
  sql("INSERT INTO stela.stela_migrations VALUES ('eventstore', 99, 'newer', '', DEFAULT, "
      "99, 99)");
  EXPECT_THAT(fails(url(), 1), HasSubstr("migrated by a newer Stela"));
}

TEST_F(ToolOnPostgres, ShowsNoPasswordInErrorsAsJson) {
  for (const char* const database :
       {"postgresql://app:c4n4ry@127.0.0.1:1/shop", "postgresql://app:c4n4ry@h@h/shop",
        "postgresql://app:c4n4ry", "postgresql://app@h/shop?password=c4n4ry&bad"}) {
    const Ran ran = stela({"streams", "list", "--json", "--db", database});
    EXPECT_NE(ran.code, 0);
    EXPECT_THAT(ran.err, HasSubstr(R"({"error":")"));
  }
}

TEST_F(ToolOnPostgres, JsonOfEveryCommandHasOneVocabulary) {
  well({"migrate"});
  Store store = postgres::open(url());
  populate(store, url(),
           [&](const std::string& statement) { sql("SET search_path = stela; " + statement); });
  check_json_of_every_command(url());
}

class ToolPrivacyOnPostgres : public ToolOnPostgres {
 protected:
  void SetUp() override {
    ToolOnPostgres::SetUp();
    well({"migrate"});
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = postgres::open(url(), {.keys = &keys});
    const Outbox outbox{store};
    nats::migrate_inbox(store);
    const Projections projections{store};
    UnitOfWork unit{store};
    for (const char* const name : {"guest-m1", "guest-a1"}) {
      unit.append(StreamId::parse(name), ExpectedVersion::any(), Moved{"Elm St"});
    }
    unit.commit();
  }
  std::string in_stela(const std::string& text) { return sql("SET search_path = stela; " + text); }
  Ran privacy(std::vector<std::string> words) const {
    words.insert(words.begin(), "privacy");
    return stela(
        words, {.environment = {{"STELA_KEYS_STORE", keys_}, {"STELA_KEYS_ERASURES", erasures_}}});
  }

  TempDir dir_ = TempDir::in_memory();
  std::string keys_ = dir_.file("keys.db");
  std::string erasures_ = dir_.file("erasures");
};

TEST_F(ToolPrivacyOnPostgres, ClearsErrorsOfThePersonsEvents) {
  for (const std::string& text : keep_errors()) in_stela(text);
  EXPECT_EQ(in_stela(count_kept_errors(1)), "10");
  EXPECT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  EXPECT_EQ(in_stela(count_kept_errors(1)), "0");
  EXPECT_EQ(in_stela(count_kept_errors(2)), "10");
}

TEST_F(ToolPrivacyOnPostgres, ForgetsAgainAsTheBrokerSays) {
  const NatsServer nats;
  const std::vector<std::string> broker{"--nats", nats.url(), "--set", "nats.stream=SHOP"};
  const auto at_broker = [&](std::vector<std::string> words) {
    words.insert(words.end(), broker.begin(), broker.end());
    return words;
  };
  std::filesystem::copy_file(keys_, keys_ + ".backup");
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  well(at_broker({"outbox", "work", "--until-empty", "--silent", "--ensure-stream"}));
  // What a restore of all of it leaves, once the event was read back.
  in_stela("DELETE FROM stela_forgotten_keys");
  std::filesystem::rename(keys_ + ".backup", keys_);
  std::filesystem::remove(erasures_);
  ASSERT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "1")
      << "by the event, which is still here";

  const std::string done = privacy(at_broker({"reapply", "--from-broker", "--yes", "--json"})).out;
  EXPECT_EQ(member(done, "destroyed"), "1");
  EXPECT_EQ(in_stela("SELECT count(*) FROM stela_forgotten_keys"), "1");
  EXPECT_EQ(lines_of(privacy({"subjects", "--json"}).out).size(), 1U);
}

TEST_F(ToolOnPostgres, TellsAgentsNoPassword) {
  well({"migrate"});
  well({"outbox", "enable"});
  const std::string url_now = url();
  const std::string location =
      url_now + (url_now.find('?') == std::string::npos ? '?' : '&') + "password=c4n4ry";
  const Ran ran = run({"mcp", "--db", location},
                      {.input = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":)"
                                R"("preview_outbox_retry","arguments":{"all":true}}})"
                                "\n"});
  EXPECT_THAT(ran.out, HasSubstr("outbox retry --all --db"));
  EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("c4n4ry")));
}

TEST_F(ToolOnPostgres, IsShownByTheConsole) {
  well({"migrate"});
  Store store = postgres::open(url());
  populate(store, url(),
           [&](const std::string& statement) { sql("SET search_path = stela; " + statement); });
  const TempDir folder;
  const std::string token_file = folder.file("token");
  const std::string token(64, 'a');
  std::ofstream{token_file} << token << '\n';
  std::filesystem::permissions(token_file, std::filesystem::perms::owner_read);
  Running console{{"serve", "--db", "shop=" + url(), "--listen", "0", "--token-file", token_file}};
  std::uint16_t port = 0;
  ASSERT_TRUE(eventually([&] { return (port = port_in(console.out())) != 0; })) << console.err();
  const std::string other = folder.file("other.db");
  EXPECT_EQ(run({"migrate", "--db", other}).code, 0);
  EXPECT_EQ(run({"serve", "--db", url(), "--operate-as", other}).code, 2);
  EXPECT_EQ(run({"serve", "--db", other, "--operate-as", url()}).code, 2);
  EXPECT_EQ(run({"serve", "--db", url(), "--operate-as", "x=" + url()}).code, 2);
  const auto data = [&](const std::string& path) {
    return ask(port, "GET /api/v1/s/shop/" + path +
                         " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                         "\r\nAuthorization: Bearer " + token + "\r\nConnection: close\r\n\r\n");
  };
  EXPECT_THAT(data("events/show/1"), HasSubstr(R"("stream":"order-1")"));
  EXPECT_THAT(data("overview"), AllOf(HasSubstr(R"("projections":[{)"), HasSubstr(R"("inbox":[{)"),
                                      HasSubstr(R"("timers":[{)"), Not(HasSubstr(R"({"error":)"))));
}

}  // namespace
}  // namespace stela::test::postgres_test
