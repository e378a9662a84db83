// What a server says of itself.
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore/detail/postgres_status.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stela::postgres::status_test {
namespace {

using test::eventually;
using test::message_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(PostgresStatus, NamesWhatAStoreDependsOn) {
  const test::PostgresServer server;
  Store store = open(server.url(), {.schema = "mine", .readers = 5});
  const ServerStatus status = server_status(store);
  EXPECT_THAT(status.version, HasSubstr("1"));
  EXPECT_EQ(status.schema, "mine");
  EXPECT_EQ(status.role, "postgres");
  EXPECT_FALSE(status.is_standby);
  EXPECT_FALSE(status.has_fsync);
  EXPECT_FALSE(status.has_autovacuum);
  EXPECT_EQ(status.synchronous_commit, "on");
  EXPECT_EQ(status.max_connections, 50);
  EXPECT_GE(status.connections, 1);
  EXPECT_EQ(status.readers, 5);
  EXPECT_FALSE(status.is_pooled);
  EXPECT_THAT(status.standbys, IsEmpty());
  EXPECT_THAT(status.missing_rights, IsEmpty());
}

TEST(PostgresStatus, NamesOpenTransactions) {
  const test::PostgresServer server{{.settings = "max_prepared_transactions = 2"}};
  Store store = open(server.url());
  EXPECT_THAT(server_status(store).transactions, IsEmpty());
  Connection open{{.conninfo = server.url() + "&application_name=dump"}};
  open.execute("BEGIN; SELECT count(*) FROM stela.events");
  Connection other{{.conninfo = server.url()}};
  other.execute("BEGIN; CREATE TABLE t (n int); PREPARE TRANSACTION 'half'");

  const auto transactions = server_status(store).transactions;

  ASSERT_THAT(transactions, SizeIs(2));
  EXPECT_THAT(transactions[0].who, HasSubstr("of postgres (dump)"));
  EXPECT_EQ(transactions[1].who, "prepared transaction 'half' of postgres");
  EXPECT_GT(transactions[0].age, transactions[1].age);
  other.execute("ROLLBACK PREPARED 'half'");
}

TEST(PostgresStatus, CountsDeadRows) {
  const test::PostgresServer server;
  Store store = open(server.url());
  Connection admin{{.conninfo = server.url()}};
  admin.execute(
      "INSERT INTO stela.append_groups (group_id, is_void) "
      "SELECT gen_random_uuid(), true FROM generate_series(1, 500)");
  admin.execute("DELETE FROM stela.append_groups");
  EXPECT_TRUE(eventually([&] {
    const auto tables = server_status(store).tables;
    return std::any_of(tables.begin(), tables.end(), [](const TableStatus& table) {
      return table.table == "append_groups" && table.dead_rows == 500 && table.bytes > 0;
    });
  }));
}

TEST(PostgresStatus, NamesTheRightsThatARoleLacks) {
  const test::PostgresServer server;
  Store store = open(server.url());
  Connection admin{{.conninfo = server.url()}};
  admin.execute(
      "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA stela TO app; "
      "GRANT SELECT ON ALL TABLES IN SCHEMA stela TO app");
  Store of_app = open(server.url("postgres", "app"), {.read_only = true});
  EXPECT_THAT(server_status(of_app).missing_rights, IsEmpty());
  EXPECT_FALSE(server_status(of_app).may_append);
  admin.execute("REVOKE SELECT ON stela.streams FROM app; GRANT INSERT ON stela.events TO app");
  const ServerStatus status = server_status(of_app);
  EXPECT_TRUE(status.may_append);
  EXPECT_FALSE(status.may_relay);
  EXPECT_THAT(status.missing_rights,
              AllOf(Contains("SELECT on streams"), Contains("INSERT on streams"),
                    Contains("UPDATE on snapshots"), Contains("USAGE on schema stela_app"),
                    Not(Contains("INSERT on events"))));
  admin.execute(
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stela TO app; "
      "GRANT USAGE ON SCHEMA stela_app TO app");
  EXPECT_THAT(server_status(of_app).missing_rights, IsEmpty());
}

TEST(PostgresStatus, SaysForWhomTransactionsOnlyRead) {
  const test::PostgresServer server;
  Store store = open(server.url());
  Connection admin{{.conninfo = server.url()}};
  EXPECT_FALSE(server_status(store).only_reads);
  admin.execute("ALTER ROLE postgres SET default_transaction_read_only = on");
  Store of_role = open(server.url(), {.read_only = true});
  EXPECT_TRUE(server_status(of_role).role_only_reads);
  EXPECT_FALSE(server_status(of_role).only_reads);
  admin.execute(
      "ALTER ROLE postgres RESET default_transaction_read_only; "
      "ALTER DATABASE postgres SET default_transaction_read_only = on");
  EXPECT_FALSE(server_status(of_role).role_only_reads);
  EXPECT_TRUE(server_status(of_role).only_reads);
}

TEST(PostgresStatus, IsRefusedForAFile) {
  Store store = sqlite::open_in_memory();
  EXPECT_THAT(message_of<UsageError>([&] { (void)server_status(store); }),
              HasSubstr("isn't on PostgreSQL"));
}

}  // namespace
}  // namespace stela::postgres::status_test
