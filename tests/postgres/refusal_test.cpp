// What a connection says when PostgreSQL refuses something.
#include "database/postgres/connection.hpp"
#include "support/messages.hpp"
#include "support/postgres_server.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/detail/not_found.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace stela::postgres::refusal_test {
namespace {

using test::message_of;
using test::PostgresServer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const PostgresServer::Options with_passwords{
    .tcp = true,
    .access = "host all kept 127.0.0.1/32 scram-sha-256\nhost all out 127.0.0.1/32 reject"};

void connect(const std::string& conninfo) {
  const Connection connection{{.conninfo = conninfo}};
}

TEST(PostgresRefusal, NamesTheProblemOfAConnection) {
  const PostgresServer server{with_passwords};
  {
    Connection admin{{.conninfo = server.url()}};
    admin.execute("CREATE ROLE kept LOGIN PASSWORD 'right'; CREATE ROLE out LOGIN");
    admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
  }
  const std::string place = server.tcp() + " dbname=postgres ";
  EXPECT_NO_THROW(connect(place + "user=kept password=right"));

  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place + "user=kept password=wr0ng"); }),
              AllOf(HasSubstr("password authentication failed"), HasSubstr("PGPASSWORD"),
                    HasSubstr("kept@127.0.0.1:" + std::to_string(server.port()) + "/postgres"),
                    Not(HasSubstr("wr0ng"))));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place + "user=kept"); }),
              HasSubstr("no password supplied"));
  EXPECT_THAT(
      message_of<StoreBusy>([&] { connect("host=127.0.0.1 port=1 user=a password=wr0ng"); }),
      AllOf(HasSubstr("is the server running?"), Not(HasSubstr("wr0ng"))));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect("host=nowhere.invalid user=a"); }),
              HasSubstr("is the host's name right?"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place + "user=postgres sslmode=require"); }),
              HasSubstr("sslmode"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place + "user=out"); }), HasSubstr("reject"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(server.tcp() + " dbname=no user=postgres"); }),
              HasSubstr("make the role and the database first"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(server.url("latin")); }),
              AllOf(HasSubstr("LATIN1"), HasSubstr("ENCODING 'UTF8'")));
}

TEST(PostgresRefusal, NamesWhatARoleOrADatabaseDoesNotAllow) {
  const PostgresServer server;
  Connection admin{{.conninfo = server.url()}};
  admin.execute(
      "CREATE ROLE out NOLOGIN; CREATE ROLE few LOGIN CONNECTION LIMIT 1; "
      "CREATE ROLE other LOGIN");
  for (const char* const name : {"closed", "small", "private"}) {
    admin.execute("CREATE DATABASE " + std::string{name});
  }
  admin.execute(
      "ALTER DATABASE closed ALLOW_CONNECTIONS false; "
      "ALTER DATABASE small CONNECTION LIMIT 0; "
      "REVOKE CONNECT ON DATABASE private FROM PUBLIC");
  const auto place = [&](const std::string& database, const std::string& user) {
    return server.url(database, user);
  };
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place("postgres", "out")); }),
              HasSubstr("to LOGIN"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place("private", "other")); }),
              HasSubstr("GRANT CONNECT"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place("closed", "other")); }),
              HasSubstr("ALLOW_CONNECTIONS"));
  EXPECT_THAT(message_of<StoreBusy>([&] { connect(place("small", "other")); }),
              HasSubstr("CONNECTION LIMIT"));
  const Connection first{{.conninfo = place("postgres", "few")}};
  EXPECT_THAT(message_of<StoreBusy>([&] { connect(place("postgres", "few")); }),
              HasSubstr("CONNECTION LIMIT"));
}

TEST(PostgresRefusal, RepeatsNoConnectionStringThatIsMalformed) {
  for (const char* const conninfo :
       {"postgresql://app:wr0ng@db:port/shop?no_such=1", "user=a wr0ng", "host='a wr0ng",
        // What isn't written as %XX would become a host, a port or a database.
        "postgresql://app:wr0ng@or@db/shop", "postgresql://app:wr0ng/or@db/shop",
        "postgresql://app:or/wr0ng@db/shop", "postgresql://app:wr0ng/shop",
        "postgresql://app:wr0ng%@db/shop", "postgresql://app:12/wr0ng?or@db/shop",
        "postgresql://app@db/shop?password=or&wr0ng", "postgresql://app@db/shop?pasword=wr0ng",
        "host=db password=or wr0ng", "host=db pasword=wr0ng", "shop.db"}) {
    EXPECT_THAT(message_of<UsageError>([&] { connect(conninfo); }),
                AllOf(HasSubstr("postgresql://user@host/database"), HasSubstr("%XX"),
                      Not(HasSubstr("wr0ng"))))
        << conninfo;
  }
  EXPECT_EQ(describe("postgresql://app:wr0ng@db1,db2:6/shop?sslmode=require"),
            "app@db1,db2:6/shop");
}

TEST(PostgresRefusal, UsesTheReachableHost) {
  const PostgresServer server{{.tcp = true}};
  const std::string port = std::to_string(server.port());
  const Connection connection{{.conninfo = "postgresql://postgres@127.0.0.1:1,127.0.0.1:" + port +
                                           "/postgres?target_session_attrs=read-write"}};
  EXPECT_EQ(PQport(connection.handle()), port);
}

TEST(PostgresRefusal, PassesAHostThatTakesConnectionsAndEndsThem) {
  // As a proxy whose server is gone.
  test::TcpProxy dead{1};
  const PostgresServer server{{.tcp = true}};
  const std::string ports = std::to_string(dead.port()) + ',' + std::to_string(server.port());
  const Connection connection{
      {.conninfo = "host=127.0.0.1,127.0.0.1 port=" + ports + " user=postgres dbname=postgres"}};
  EXPECT_EQ(PQport(connection.handle()), std::to_string(server.port()));
  EXPECT_THAT(message_of<UsageError>([&] { connect("host=a,b,c port=1,2 user=a"); }),
              HasSubstr("as many ports"));
}

TEST(PostgresRefusal, IsBusyWhenTheServerHasNoConnectionLeft) {
  const PostgresServer server{{.settings = "max_connections = 4\nsuperuser_reserved_connections = 0"
                                           "\nmax_wal_senders = 0"}};
  std::vector<std::unique_ptr<Connection>> all;
  const auto fill = [&] {
    for (int i = 0; i < 5; ++i) {
      all.push_back(std::make_unique<Connection>(ConnectionOptions{.conninfo = server.url()}));
    }
  };
  EXPECT_THAT(message_of<StoreBusy>(fill), HasSubstr("raise max_connections"));
}

/// What comes of an error with this SQLSTATE.
template <class Expected>
std::string raised(Connection& connection, const std::string& state) {
  return message_of<Expected>([&] {
    connection.execute("DO $$ BEGIN RAISE EXCEPTION 'words' USING ERRCODE = '" + state +
                       "'; END $$");
  });
}

TEST(PostgresRefusal, FollowsTheStateOfTheError) {
  const PostgresServer server;
  Connection connection{{.conninfo = server.url()}};
  EXPECT_THAT(raised<StoreFull>(connection, "53100"), HasSubstr("make room"));
  EXPECT_THAT(raised<StoreFull>(connection, "53400"), HasSubstr("raise the limit"));
  EXPECT_THAT(raised<StoreBusy>(connection, "53200"), HasSubstr("short of memory"));
  EXPECT_THAT(raised<StoreBusy>(connection, "55P03"), HasSubstr("another session holds a lock"));
  EXPECT_THAT(raised<StoreBusy>(connection, "40P01"), HasSubstr("try again"));
  EXPECT_THAT(raised<StoreBusy>(connection, "57014"), HasSubstr("statement_timeout"));
  EXPECT_THAT(raised<StoreFailed>(connection, "XX001"), HasSubstr("words (SQLSTATE XX001)"));
}

TEST(PostgresRefusal, NamesASchemaThatIsAnothersOrHoldsNoStore) {
  const PostgresServer server;
  Connection admin{{.conninfo = server.url()}};
  admin.execute("CREATE SCHEMA theirs; CREATE TABLE theirs.streams (n int)");
  admin.execute("CREATE SCHEMA given");

  EXPECT_THAT(message_of<SchemaMismatch>([&] { open(server.url(), {.schema = "theirs"}); }),
              AllOf(HasSubstr("'theirs' holds 'streams'"), HasSubstr("name another schema")));
  EXPECT_THAT(message_of<NotFound>([&] { open(server.url(), {.create = false}); }),
              HasSubstr("there is no store in postgres@"));
  EXPECT_NO_THROW(open(server.url(), {.schema = "given"}));
  EXPECT_NO_THROW(open(server.url(), {.schema = "given", .create = false}));
}

TEST(PostgresRefusal, NamesWhatMakesAServerOnlyRead) {
  const PostgresServer server;
  Connection{{.conninfo = server.url()}}.execute(
      "ALTER DATABASE postgres SET default_transaction_read_only = on");
  EXPECT_THAT(message_of<StoreFailed>([&] { open(server.url()); }),
              HasSubstr("default_transaction_read_only is on"));
}

TEST(PostgresRefusal, NamesTheRightsThatARoleLacks) {
  const PostgresServer server;
  open(server.url());
  Connection{{.conninfo = server.url()}}.execute("CREATE ROLE nobody LOGIN");
  EXPECT_THAT(message_of<StoreFailed>([&] { open(server.url("postgres", "nobody")); }),
              AllOf(HasSubstr("permission denied"), HasSubstr("GRANT")));
  EXPECT_THAT(
      message_of<StoreFailed>([&] { open(server.url("postgres", "nobody"), {.schema = "new"}); }),
      AllOf(HasSubstr("permission denied for database"), HasSubstr("GRANT")));
}

TEST(PostgresRefusal, NamesTheTimeoutThatEndsAStatement) {
  const PostgresServer server;
  Store store = open(server.url());
  Connection holder{{.conninfo = server.url()}};
  holder.execute("BEGIN; LOCK TABLE stela.events IN ACCESS EXCLUSIVE MODE");
  Store hurried = open(server.url() + "&options=-c%20statement_timeout%3D300");
  EXPECT_THAT(message_of<StoreBusy>([&] { hurried.last_sequence(); }),
              HasSubstr("because of statement_timeout"));
}

/// A certificate of "localhost", and the file of its authority.
std::string make_certificate(const test::TempDir& dir) {
  const std::string quiet = " > /dev/null 2>&1";
  EXPECT_EQ(
      std::system(("cd " + dir.path().string() +
                   " && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
                   "-addext subjectAltName=DNS:localhost -keyout server.key -out server.pem" +
                   quiet)
                      .c_str()),
      0);
  return dir.file("server.pem");
}

TEST(PostgresRefusal, NamesACertificateOfAnotherHost) {
  const test::TempDir dir;
  const std::string certificate = make_certificate(dir);
  const PostgresServer server{{.tcp = true,
                               .settings = "ssl = on\nssl_cert_file = 'server.pem'\n"
                                           "ssl_key_file = 'server.key'",
                               .files = {certificate, dir.file("server.key")}}};
  const std::string place = "user=postgres dbname=postgres port=" + std::to_string(server.port()) +
                            " sslmode=verify-full sslrootcert=";

  EXPECT_NO_THROW(connect(place + certificate + " host=localhost hostaddr=127.0.0.1"));
  EXPECT_THAT(message_of<StoreFailed>([&] { connect(place + certificate + " host=127.0.0.1"); }),
              AllOf(HasSubstr("does not match host name"), HasSubstr("sslrootcert")));
  EXPECT_THAT(message_of<StoreFailed>([&] {
                connect(place + dir.file("missing.pem") + " host=localhost hostaddr=127.0.0.1");
              }),
              HasSubstr("missing.pem"));
}

TEST(PostgresRefusal, NamesTheConstraintThatRefusesARow) {
  const PostgresServer server;
  Connection connection{{.conninfo = server.url()}};
  connection.execute(
      "CREATE TABLE emails (owner bigint NOT NULL, email text, "
      "CONSTRAINT one_email UNIQUE (owner, email), CONSTRAINT has_at CHECK (email LIKE '%@%'))");
  const auto insert = [&](const char* values) -> Constraint {
    try {
      connection.query("INSERT INTO emails VALUES (" + std::string{values} + ')');
    } catch (const ConstraintViolated& e) {
      return e.constraint();
    }
    return {};
  };
  EXPECT_EQ(insert("1, 'a@b'").name, "");
  const Constraint unique = insert("1, 'a@b'");
  EXPECT_EQ(unique.name, "one_email");
  EXPECT_EQ(unique.table, "emails");
  EXPECT_THAT(unique.columns, ElementsAre("owner", "email"));
  EXPECT_EQ(insert("1, 'ab'").name, "has_at");
  EXPECT_THAT(insert("NULL, 'a@b'").columns, ElementsAre("owner"));
}

TEST(PostgresRefusal, SaysThatRightsAreMissingOrTheServerOnlyReads) {
  const PostgresServer server;
  Connection admin{{.conninfo = server.url()}};
  admin.execute("CREATE ROLE app LOGIN; CREATE TABLE secrets (n int)");
  Connection app{{.conninfo = server.url("postgres", "app")}};
  EXPECT_THAT(message_of<StoreFailed>([&] { app.query("SELECT * FROM secrets"); }),
              HasSubstr("GRANT"));
  EXPECT_THAT(message_of<StoreFailed>([&] {
                app.execute("BEGIN READ ONLY");
                app.query("CREATE TABLE mine (n int)");
              }),
              HasSubstr("the server only reads"));
}

TEST(PostgresRefusal, GivesUpAStatementThatIsCancelledOrWaitsForALockTooLong) {
  const PostgresServer server;
  Connection holder{{.conninfo = server.url()}};
  holder.execute("BEGIN; SELECT pg_advisory_xact_lock(1)");
  Connection other{{.conninfo = server.url()}};
  other.execute("SET lock_timeout = 50");
  EXPECT_THAT(message_of<StoreBusy>([&] { other.query("SELECT pg_advisory_lock(1)"); }),
              HasSubstr("55P03"));
  other.execute("SET lock_timeout = 0; SET statement_timeout = 50");
  EXPECT_THAT(message_of<StoreBusy>([&] { other.query("SELECT pg_advisory_lock(1)"); }),
              HasSubstr("57014"));
}

}  // namespace
}  // namespace stela::postgres::refusal_test
