// What is so of a key store on a PostgreSQL server alone.
#include "support/key_place.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework/error.hpp>
#include <stela/privacy.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace stela::server_keys_test {
namespace {

using test::run_at;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Subject margaret{"guest-m1", ""};
const Subject ada{"guest-a1", ""};

class KeyServer : public ::testing::Test {
 protected:
  KeyServer() { test::write_secret(dir.file("master"), std::string(32, 'm')); }

  Keys open(const std::string& url, KeyOptions options = {}) {
    options.master = key_file(dir.file("master"));
    options.erasures = dir.file("erasures");
    options.log = &log;
    return open_keys(url, options);
  }
  Keys open() { return open(server.url()); }

  const test::TempDir dir;
  test::PostgresServer server;
  test::RecordingLog log;
};

TEST_F(KeyServer, RefusesADatabaseWithEvents) {
  postgres::open(server.url(), {.schema = "shop"});
  EXPECT_THAT([&] { open(); },
              ThrowsMessage<UsageError>(HasSubstr("has a store of events, in the schema 'shop'")));
}

TEST_F(KeyServer, RefusesADatabaseThatGotEventsLater) {
  open().key_of(margaret);
  postgres::open(server.url(), {.schema = "shop"});
  EXPECT_THAT([&] { open(); }, ThrowsMessage<UsageError>(HasSubstr("has a store of events")));
}

TEST_F(KeyServer, SaysWhatKeepsFormerKeysInItsTables) {
  Keys keys = open();
  const KeyId id = keys.key_of(margaret)->id;
  keys.destroy({&id, 1});
  const std::string url = server.url();
  const auto dumps = [&] {
    return run_at(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").size() == 1;
  };
  std::thread dump{[&] {
    EXPECT_ANY_THROW(run_at(url,
                            "BEGIN ISOLATION LEVEL REPEATABLE READ; "
                            "SELECT count(*) FROM stela_keys.key_encryption_keys; "
                            "SELECT pg_sleep(600)"));
  }};
  EXPECT_TRUE(test::eventually(dumps));
  EXPECT_THAT(keys.rotate().left_over, HasSubstr("an open transaction"));
  run_at(url,
         "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
  dump.join();
  EXPECT_EQ(keys.rotate().left_over, "");
}

TEST_F(KeyServer, RemovesTheFileWithTheFormerKeyWhateverTheServerCounts) {
  Keys keys = open();
  const KeyId id = keys.key_of(margaret)->id;
  run_at(server.url(), "ALTER SYSTEM SET track_counts = off");
  run_at(server.url(), "SELECT pg_reload_conf()");
  const std::string file = "SELECT pg_relation_filenode('stela_keys.key_encryption_keys')";
  const auto before = run_at(server.url(), file);
  keys.destroy({&id, 1});
  EXPECT_EQ(keys.rotate().left_over, "");
  EXPECT_NE(run_at(server.url(), file), before);
  EXPECT_TRUE(keys.standing().rotated_at.has_value());
}

TEST_F(KeyServer, NeedsAMasterKeyAndAFileOfErasures) {
  const auto refused = ThrowsMessage<UsageError>(HasSubstr("needs `.master` and `.erasures`"));
  const MasterKey master = key_file(dir.file("master"));
  EXPECT_THAT([&] { open_keys(server.url()); }, refused);
  EXPECT_THAT([&] { open_keys(server.url(), {.master = master}); }, refused);
  const KeyId id = open().key_of(margaret)->id;
  Keys reader = open_keys(server.url(), {.master = master, .read_only = true});
  EXPECT_EQ(reader.find(id)->subject, margaret);
  EXPECT_THAT(reader.erasure_problems(), ::testing::IsEmpty());
}

TEST_F(KeyServer, SaysWhichRightsAreMissing) {
  KeyId id = open().key_of(margaret)->id;
  run_at(server.url(), "CREATE ROLE shop LOGIN");
  const std::string url = server.url("postgres", "shop");
  const auto refused = ThrowsMessage<StoreFailed>(HasSubstr("the role lacks rights"));
  EXPECT_THAT([&] { open(url); }, refused);

  run_at(server.url(),
         "GRANT USAGE ON SCHEMA stela_keys TO shop; "
         "GRANT SELECT ON ALL TABLES IN SCHEMA stela_keys TO shop");
  Keys keys = open(url);
  EXPECT_EQ(keys.key_of(margaret)->id, id);
  EXPECT_THAT([&] { keys.key_of(ada); }, refused);

  run_at(server.url(), "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stela_keys TO shop");
  EXPECT_NO_THROW(keys.key_of(ada));
  EXPECT_EQ(keys.rotate().rewrapped, 2);
  EXPECT_THAT(log.entries(), Contains("warning keys.former_left"));
  EXPECT_FALSE(keys.standing().rotated_at.has_value());
  run_at(server.url(), "GRANT TRUNCATE ON stela_keys.key_encryption_keys TO shop");
  EXPECT_EQ(keys.rotate().left_over, "");
}

TEST_F(KeyServer, RefusesTablesOfANewerStela) {
  open();
  run_at(server.url(),
         "INSERT INTO stela_keys.stela_migrations VALUES ('keys', 99, 'x', 'x', now(), 99, 99)");
  EXPECT_THAT([&] { open(); }, ThrowsMessage<SchemaMismatch>(HasSubstr("by a newer Stela")));
}

TEST_F(KeyServer, IsBusyWhileTheServerIsGone) {
  Keys keys = open();
  const KeyId id = keys.key_of(margaret)->id;
  server.crash();
  EXPECT_THROW(keys.refresh(), StoreBusy);
  EXPECT_THROW(keys.key_of(ada), StoreBusy);
  EXPECT_THROW(open(), StoreBusy);
  server.start_again();
  EXPECT_EQ(keys.key_of(margaret)->id, id);
  EXPECT_NO_THROW(keys.key_of(ada));
}

TEST_F(KeyServer, DestroysAgainWhatADumpBringsBack) {
  run_at(server.url(), "CREATE DATABASE keys");
  const std::string url = server.url("keys");
  Keys keys = open(url);
  const KeyId id = keys.key_of(margaret)->id;
  const KeyId others = keys.key_of(ada)->id;
  server.dump("keys", dir.file("night.sql"));
  keys.destroy({&id, 1});
  server.replace_by_dump("keys", dir.file("night.sql"));

  EXPECT_THROW(keys.key_of(ada), StoreFailed) << "it is an older one";
  keys = open(url);
  EXPECT_EQ(keys.destroyed_again(), 1U);
  EXPECT_EQ(keys.find(id), nullptr);
  EXPECT_NE(keys.find(others), nullptr);
}

}  // namespace
}  // namespace stela::server_keys_test
