// The roles of a store on PostgreSQL: what each may do, and what it is refused.
#include "nats/jetstream.hpp"
#include "projections/alarms.hpp"
#include "projections/models.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/detail/postgres_status.hpp>
#include <stela/eventstore/tags.hpp>
#include <stela/framework/decision.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::postgres_roles_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void append(EventStore& store) {
  test::append(store, "order-1", {NewEvent{"order.placed", 1, true, "{}"}});
}

class RolesOnPostgres : public ::testing::Test {
 protected:
  RolesOnPostgres() {
    // The owner makes its tables in a schema that it was given.
    server.ask("CREATE ROLE shop_reader");
    grant();
    for (const char* const role : {"shop_owner", "shop", "shop_relay", "shop_reader"}) {
      server.ask("ALTER ROLE " + std::string{role} + " LOGIN");
    }
    Store owned = open_as("shop_owner");
    migrate_outbox(owned);
    nats::migrate_inbox(owned);
    const Projections projections{owned};
    grant();
  }

  void grant() const {
    server.run_script(STELA_GRANTS, {"owner=shop_owner", "application=shop", "relay=shop_relay"});
    server.ask(
        "GRANT USAGE ON SCHEMA stela, stela_app TO shop_reader; "
        "GRANT SELECT ON ALL TABLES IN SCHEMA stela, stela_app TO shop_reader; "
        "GRANT SELECT ON ALL SEQUENCES IN SCHEMA stela TO shop_reader; "
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA stela TO shop_reader");
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
  EXPECT_EQ((Relay{outbox, publisher}.run_once().published), 2);
  EXPECT_EQ(OutboxOperations{relayed}.status().partitions.front().published, 2);

  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(reader.last_sequence(), GlobalSequence{2});
  EXPECT_EQ(test::lines(reader.read_all()).size(), 2U);
}

TEST_F(RolesOnPostgres, LackNoRightThatTheDoctorAsksFor) {
  const auto status_of = [&](const std::string& role) {
    Store store = open_as(role, {.read_only = role == "shop_reader"});
    postgres::ServerStatus status = postgres::server_status(store);
    EXPECT_THAT(status.missing_rights, IsEmpty()) << role;
    return status;
  };
  EXPECT_TRUE(status_of("shop_owner").may_append);
  EXPECT_TRUE(status_of("shop").may_append);
  EXPECT_TRUE(status_of("shop").may_consume);
  EXPECT_TRUE(status_of("shop_owner").may_project);
  EXPECT_TRUE(status_of("shop_relay").may_relay);
  EXPECT_FALSE(status_of("shop_relay").may_append);
  EXPECT_FALSE(status_of("shop_reader").may_append);
  EXPECT_FALSE(status_of("shop_reader").may_relay);
}

/// As Totals<1>, with another column.
class Wide {
 public:
  static constexpr ProjectorType projector_type{"totals", 3};
  using Events = EventSet<test::OrderPlaced>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {orders} (place BIGSERIAL, id TEXT PRIMARY KEY)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {orders} (id) VALUES (?1)", e.stream().key());
  }
};

class Ids {
 public:
  static constexpr ProjectorType projector_type{"ids", 1};
  using Events = EventSet<test::OrderPlaced>;

  void create(ReadModel& model) { model.execute("CREATE TABLE {ids} (id TEXT)"); }
  void project(ReadModel&, const Recorded<test::OrderPlaced>&) {}
};

TEST_F(RolesOnPostgres, LetTheOwnerMakeRebuildAndReplaceReadModels) {
  Store store = open_as("shop_owner");
  const Outbox outbox{store};
  {
    Projections projections{store};
    projections.add(test::Totals<1>{});
    projections.add(test::Counts{});
    test::place(store, "1");
    Runner{projections}.run_once();
    Replayer{projections}.run();
    Replayer{projections}.run({.filter = {.streams = {"order-1"}}});
    ProjectionOperations{store}.drop_replay("totals");
  }
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(test::orders_in(reader).size(), 1U) << "without the script in between";
  {
    Projections projections{store};
    projections.add(test::Totals<2>{});
    Runner{projections, {.drop_after = 0ms}}.run_once();
  }
  EXPECT_EQ(test::orders_in(reader).size(), 1U);
  {
    // One of another shape takes its view.
    Projections projections{store};
    projections.add(Wide{});
    Runner{projections, {.drop_after = 0ms}}.run_once();
  }
  EXPECT_THAT(test::orders_in(reader), ElementsAre("1 1"));
  ProjectionOperations{store}.remove("counts");
  EXPECT_THAT(test::standing(reader), ElementsAre(HasSubstr(" v3 living 1")));
}

TEST_F(RolesOnPostgres, LetTheApplicationDriveWhatTheOwnerHasMade) {
  {
    Store store = open_as("shop_owner");
    Projections projections{store};
    projections.add_inline(test::Counts{});
    projections.add(Wide{});
  }
  Store store = open_as("shop");
  const Outbox outbox{store};
  Projections projections{store};
  projections.add_inline(test::Counts{});
  projections.add(Wide{});
  test::place(store, "1");
  EXPECT_EQ((Runner{projections, {.drop_after = 0ms}}.run_once().failed), 0);
  EXPECT_THAT(test::orders_in(store), ElementsAre("1 1"));
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT n FROM counts"), 1);
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(ModelReader{reader}.value<int>("SELECT n FROM counts"), 1);

  EXPECT_THAT(message_of<StoreFailed>([&] { projections.add_inline(Ids{}); }),
              HasSubstr("permission denied"));
  EXPECT_THAT(refusal("shop_reader", "DELETE FROM \"stela/counts@1\".counts"),
              HasSubstr("permission denied"));
}

TEST_F(RolesOnPostgres, LeaveRetiredTablesToTheOwner) {
  {
    Store store = open_as("shop_owner");
    Projections projections{store};
    projections.add(test::Totals<1>{});
    projections.add(test::Counts{});
    test::place(store, "1");
    Replayer{projections}.run();
  }
  Store store = open_as("shop");
  Projections projections{store};
  projections.add(test::Totals<1>{});
  test::place(store, "2");
  Runner{projections, {.drop_after = 0ms}}.run_once();
  EXPECT_THAT(test::standing(store), SizeIs(4));
  EXPECT_EQ(test::orders_in(store).size(), 2U);
}

TEST_F(RolesOnPostgres, MayBeGrantedToRolesThatLogIn) {
  for (const std::string role : {"blue", "green"}) {
    server.ask("CREATE ROLE " + role + " LOGIN IN ROLE shop_owner");
  }
  for (const std::string role : {"blue", "green", "blue"}) {
    Store store = open_as(role);
    Projections projections{store};
    projections.add(test::Totals<1>{});
    test::place(store, role + std::to_string(store.last_sequence().value()));
    Replayer{projections}.run();
    Runner{projections, {.drop_after = 0ms}}.run_once();
  }
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(test::orders_in(reader).size(), 3U);
  EXPECT_EQ(server.ask("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'stela/%' "
                       "AND nspowner = 'shop_owner'::regrole"),
            "1");
}

TEST_F(RolesOnPostgres, GiveTheOwnerWhatASuperuserMakes) {
  {
    Store store = postgres::open(server.url());
    Projections projections{store};
    projections.add(test::Totals<1>{});
    test::place(store, "1");
    Runner{projections}.run_once();
  }
  Store store = open_as("shop_owner");
  Projections projections{store};
  projections.add(test::Totals<2>{});
  Runner{projections, {.drop_after = 0ms}}.run_once();
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(test::orders_in(reader).size(), 1U);
  EXPECT_THAT(test::standing(reader), ElementsAre("totals@2 v2 living 1"));
}

TEST_F(RolesOnPostgres, LetAnApplicationMakeReadModelsThatMayCreateSchemas) {
  server.ask("GRANT CREATE ON SCHEMA stela TO shop; GRANT CREATE ON DATABASE postgres TO shop");
  Store store = open_as("shop");
  Projections projections{store};
  projections.add(test::Totals<1>{});
  test::place(store, "1");
  Runner{projections}.run_once();
  Replayer{projections}.run();
  Runner{projections, {.drop_after = 0ms}}.run_once();
  // Its grants reach what it has made already.
  server.ask("CREATE ROLE late; GRANT SELECT ON stela.projections TO late");
  grant();
  EXPECT_EQ(server.ask("SELECT has_table_privilege('late', 'stela.orders', 'SELECT')"), "t");
  EXPECT_THAT(test::standing(store), ElementsAre("totals@2 v1 living 1"));
}

TEST_F(RolesOnPostgres, LetTheApplicationRunProcesses) {
  Store store = open_as("shop");
  Projections projections{store};
  projections.add_process(test::Alarms{system_clock()}, {.start = ReactionStart::beginning});
  const Timestamp now = system_clock().now();
  test::append_alarm(store, 1, test::AlarmSet{test::micros(now)});
  test::append_alarm(store, 2, test::AlarmSet{test::micros(now + 1h)});
  EXPECT_TRUE(test::eventually([&] { return Runner{projections}.run_once().timers_fired == 1; }));
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_EQ(test::AlarmHistory{reader}.rang(), 1);
  const auto pending = TimerOperations{reader}.list();
  ASSERT_THAT(pending, SizeIs(1));
  TimerOperations{store}.hold("a test");
  TimerOperations{store}.resume();
  TimerOperations{store}.cancel(pending.front().name);
  EXPECT_THAT(TimerOperations{reader}.list(), IsEmpty());
}

TEST_F(RolesOnPostgres, LetTheApplicationMakeTablesOfItsOwn) {
  const std::string may_create =
      "SELECT has_database_privilege('shop', current_database(), 'CREATE')";
  ASSERT_EQ(server.ask(may_create), "f");
  server.ask("SET ROLE shop_owner; CREATE TABLE stela_app.rates (id bigserial, cents integer)");
  Store store = open_as("shop");
  store.transact([](Transaction& transaction) {
    Sql sql{transaction};
    sql.execute("CREATE TABLE limits (used integer)");
    sql.execute("INSERT INTO limits VALUES (1)");
    sql.execute("INSERT INTO rates (cents) VALUES (7)");
  });
  EXPECT_EQ(server.ask("SELECT used FROM stela_app.limits"), "1");
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT cents FROM rates"), 7);
}

TEST_F(RolesOnPostgres, LeaveTheChoiceOfASchemaToTheOwner) {
  server.ask("DELETE FROM stela.stela_facts WHERE name = 'sql_schema'");
  EXPECT_THAT(
      message_of<StoreFailed>([&] { open_as("shop", {.sql_schema = "stela_app"}); }),
      AllOf(HasSubstr("only 'shop_owner'"), HasSubstr("not 'shop'"), HasSubstr("stela migrate")));
  open_as("shop_owner", {.sql_schema = "stela_app"});
  EXPECT_NO_THROW(open_as("shop", {.sql_schema = "stela_app"}));
}

struct Course {
  static constexpr std::string_view category = "course";
};
struct CourseOpened {
  static constexpr EventType event_type{"course.opened", 1, local};
  Id<Course> course;
  static constexpr auto tags = stela::tags(&CourseOpened::course);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(course));
  }
};
struct Opened {
  using Events = EventSet<CourseOpened>;
  Id<Course> course;
  static constexpr auto tags = stela::tags(&Opened::course);
  int times = 0;
  void apply(const CourseOpened&) { ++times; }
};

TEST_F(RolesOnPostgres, LetTheApplicationDecideAndNotTheReader) {
  const auto open_course = [](Store& store, const std::string& name) {
    const auto course = Id<Course>::from(name);
    stela::decide(store, Opened{course}, [&](Decision& decision, const Opened& opened) {
      if (opened.times < 2) decision.record(CourseOpened{course});
    });
  };
  Store store = open_as("shop");
  for (int i = 0; i < 3; ++i) open_course(store, "maths");
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  add_tags<CourseOpened>(store);
  Store reader = open_as("shop_reader");
  EXPECT_THAT(message_of<StoreFailed>([&] { open_course(reader, "physics"); }), HasSubstr("GRANT"));
}

TEST_F(RolesOnPostgres, LetTheApplicationConsume) {
  const test::NatsServer broker;
  Store store = open_as("shop");
  const Outbox outbox{store};
  append(store);
  {
    Store relayed = open_as("shop_relay");
    Outbox to_publish{relayed};
    nats::Publisher publisher{
        {.url = broker.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
    Relay{to_publish, publisher}.run_once();
  }
  nats::Consumer consumer{store, {.url = broker.url(), .name = "billing", .stream = "SHOP"}};
  consumer.on<test::OrderPlaced>([](Transaction&, const auto&) { throw std::runtime_error{"no"}; });
  EXPECT_TRUE(test::eventually([&] {
    consumer.run_once();
    return nats::InboxOperations{store}.status().front().parked_messages > 0;
  }));
  Store reader = open_as("shop_reader", {.read_only = true});
  EXPECT_THAT(nats::InboxOperations{reader}.status(), SizeIs(1));
}

TEST_F(RolesOnPostgres, MakeNoTablesUnlessTheyOwnThem) {
  server.ask("DROP SCHEMA stela CASCADE");
  grant();
  for (const std::string role : {"shop", "shop_relay", "shop_reader"}) {
    EXPECT_THAT(message_of<StoreFailed>([&] { open_as(role); }),
                AllOf(HasSubstr("only 'shop_owner'"), HasSubstr("stela migrate"),
                      HasSubstr("not '" + role + "'")));
  }
  // Whoever is a member of the owner makes them for it.
  server.ask("CREATE ROLE deploy LOGIN IN ROLE shop_owner");
  {
    Store store = open_as("deploy");
    migrate_outbox(store);
  }
  grant();
  Store store = open_as("shop");
  EXPECT_THAT(message_of<StoreFailed>([&] { const Projections projections{store}; }),
              AllOf(HasSubstr("the tables of 'projections'"), HasSubstr("only 'shop_owner'")));
  EXPECT_EQ(server.ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'stela' "
                       "AND tableowner <> 'shop_owner'"),
            "0");
}

TEST_F(RolesOnPostgres, SayThatTheRelayIsRefused) {
  const test::NatsServer broker;
  {
    Store store = open_as("shop");
    const Outbox outbox{store};
    append(store);
  }
  Store store = open_as("shop_reader");
  Outbox outbox{store};
  nats::Publisher publisher{
      {.url = broker.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
  const RelayTick tick = Relay{outbox, publisher}.run_once();
  EXPECT_EQ(tick.published, 0);
  EXPECT_THAT(tick.store_refusal, AllOf(HasSubstr("permission denied"), HasSubstr("GRANT")));
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
  {
    Store store = open_as("shop");
    const Outbox outbox{store};
  }
  Store relayed = open_as("shop_relay");
  const Outbox outbox{relayed};
  EXPECT_THAT(message_of<StoreFailed>([&] { append(relayed); }), HasSubstr("GRANT"));
  server.ask("CREATE ROLE stranger LOGIN");
  EXPECT_THAT(message_of<StoreFailed>([&] { open_as("stranger"); }),
              HasSubstr("the role lacks rights"));
}

}  // namespace
}  // namespace stela::postgres_roles_test
