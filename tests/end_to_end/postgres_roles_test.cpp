// The roles of a store on PostgreSQL: what each may do, and what it is refused.
#include "nats/jetstream.hpp"
#include "projections/models.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/postgres_status.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stela {
namespace {

using test::message_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void append(EventStore& store) {
  test::append(store, "order-1", {NewEvent{"order.placed", 1, true, "{}"}});
}

class RolesOnPostgres : public ::testing::Test {
 protected:
  RolesOnPostgres() {
    // The owner makes its tables in a schema that it was given.
    grant();
    for (const char* const role :
         {"shop_owner", "shop", "shop_projector", "shop_relay", "shop_reader"}) {
      server.ask("ALTER ROLE " + std::string{role} + " LOGIN");
    }
    Store owned = open_as("shop_owner");
    const Outbox outbox{owned};
    const Projections projections{owned};
    grant();
  }

  void grant() const {
    server.run_script(STELA_GRANTS, {"owner=shop_owner", "application=shop", "relay=shop_relay",
                                     "reader=shop_reader", "projector=shop_projector"});
  }
  Store open_as(const std::string& role, postgres::Options options = {}) const {
    return postgres::open(server.url("postgres", role), options);
  }
  /// What the server says to a statement of this role.
  std::string refusal(const std::string& role, const std::string& sql) const {
    return message_of<std::runtime_error>(
        [&] { server.ask("SET SESSION AUTHORIZATION " + role + "; " + sql); });
  }

  const test::PostgresServer server;
};

TEST_F(RolesOnPostgres, LetTheApplicationAppendTheRelayPublishAndTheReaderRead) {
  const test::NatsServer broker;
  {
    Store store = open_as("shop");
    Outbox outbox{store};
    append(store);
    store.transact([](Transaction& transaction) {
      test::append(transaction, "order-2", {NewEvent{"order.placed", 1, true, "{}"}}, "id-1");
    });
    store.save_snapshot(StreamId::parse("order-1"),
                        {.version = StreamVersion{1}, .sequence = GlobalSequence{1}});
  }
  Store relayed = open_as("shop_relay");
  Outbox outbox{relayed};
  nats::Publisher publisher{
      {.url = broker.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
  EXPECT_EQ((Relay{outbox, publisher}.tick().published), 2);
  EXPECT_EQ(OutboxOperations{relayed}.status().partitions.front().published, 2);

  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(reader.last_sequence(), GlobalSequence{2});
  EXPECT_EQ(test::lines(reader.read_all()).size(), 2U);
}

TEST_F(RolesOnPostgres, LackNoRightThatTheDoctorAsksFor) {
  Store store = open_as("shop");
  EXPECT_THAT(postgres::server_status(store).missing_rights, IsEmpty());
}

TEST_F(RolesOnPostgres, LetTheProjectorMakeReadModelsAndTheReaderReadThem) {
  {
    Store store = open_as("shop_projector");
    const Outbox outbox{store};
    Projections projections{store};
    projections.add_inline(test::Totals<1>{});
    projections.add(test::Counts{});
    test::place(store, "1");
    Runner{projections}.catch_up();
    // A read model of another shape takes its view.
    ProjectionOperations{store}.remove("counts");
    EXPECT_EQ(test::orders_in(store).size(), 1U);
  }
  grant();
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(test::orders_in(reader).size(), 1U);

  Store application = open_as("shop");
  const Outbox outbox{application};
  Projections refused{application};
  EXPECT_THAT(message_of<StoreFailed>([&] {
                refused.add_inline(test::Totals<2>{});
                test::place(application, "2");
              }),
              HasSubstr("permission denied"));
}

TEST_F(RolesOnPostgres, LetNobodyButTheOwnerChangeWhatIsStored) {
  Store store = open_as("shop");
  const Outbox outbox{store};
  append(store);
  for (const std::string role : {"shop", "shop_relay", "shop_reader"}) {
    for (const std::string sql :
         {"UPDATE stela.events SET payload = ''", "DELETE FROM stela.events",
          "TRUNCATE stela.events", "DELETE FROM stela.streams",
          "UPDATE stela.event_kinds SET version = 2", "DELETE FROM stela.append_groups",
          "DELETE FROM stela.stela_runs", "UPDATE stela.stela_facts SET value = ''",
          "DELETE FROM stela.stela_migrations", "ALTER TABLE stela.events DISABLE TRIGGER ALL",
          "DROP TABLE stela.events", "CREATE TABLE stela.mine (n integer)"}) {
      const std::string said = refusal(role, sql);
      EXPECT_TRUE(said.find("permission denied") != std::string::npos ||
                  said.find("must be owner") != std::string::npos)
          << role << ": " << sql << ": " << said;
    }
  }
  EXPECT_THAT(refusal("shop_relay", "INSERT INTO stela.streams VALUES (9, 'order-9')"),
              HasSubstr("permission denied"));
  EXPECT_THAT(refusal("shop_reader", "UPDATE stela.outbox_partitions SET epoch = 0"),
              HasSubstr("permission denied"));
  // Nor does the owner by mistake.
  EXPECT_THAT(refusal("shop_owner", "DELETE FROM stela.events"), HasSubstr("append-only"));
}

TEST_F(RolesOnPostgres, AreNamedByTheErrorOfWhatTheyMayNotDo) {
  Store relayed = open_as("shop_relay");
  const Outbox outbox{relayed};
  EXPECT_THAT(message_of<StoreFailed>([&] { append(relayed); }), HasSubstr("GRANT"));
  server.ask("CREATE ROLE stranger LOGIN");
  EXPECT_THAT(message_of<StoreFailed>([&] { open_as("stranger"); }),
              HasSubstr("the role lacks rights"));
}

}  // namespace
}  // namespace stela
