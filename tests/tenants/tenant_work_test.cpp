// One relay and one runner for many tenants: each tenant's events reach its own stream and tables,
// and what is broken concerns its tenant alone.
#include "nats/jetstream.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/secret_file.hpp"
#include "tenants/customers.hpp"
#include "tenants/tenant_place.hpp"

#include <stela/nats/consumer.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/outbox/tenant_relay.hpp>
#include <stela/projections/detail/model_reader.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/tenant_runner.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace stela::tenant_work_test {
namespace {

using test::Customers;
using test::JetStream;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using namespace std::chrono_literals;

class TenantWork : public ::testing::Test {
 protected:
  std::vector<std::string> subjects(const std::string& stream) {
    std::vector<std::string> all;
    for (const auto& message : JetStream{broker.url()}.messages(stream)) {
      all.push_back(message.subject + " for " + message.headers.at("ce-tenant"));
    }
    return all;
  }
  static std::int64_t position(Tenants& tenants, const std::string& tenant) {
    const TenantStore store = tenants.use(tenant);
    const auto all = ProjectionOperations{store.store()}.status();
    return all.empty() ? 0 : all.front().position.value();
  }

  test::NatsServer broker;
  test::TenantPlace place;
  Tenants tenants = place.open();
};

TEST_F(TenantWork, PublishesIntoAStreamEach) {
  TenantRelay relay{tenants, test::publishers_to(broker.url())};
  for (const char* const name : {"acme", "globex", "idle"}) tenants.create(name);
  test::place_order(*tenants.use("acme"), "1", "jane");
  test::place_order(*tenants.use("acme"), "2", "jane");
  test::place_order(*tenants.use("globex"), "1", "joe");
  relay.run_once();
  EXPECT_THAT(subjects("SHOP_acme"),
              ElementsAre("shop.acme.order.placed for acme", "shop.acme.order.placed for acme"));
  EXPECT_THAT(subjects("SHOP_globex"), ElementsAre("shop.globex.order.placed for globex"));
  EXPECT_THAT(JetStream{broker.url()}.streams(), SizeIs(2)) << "nothing is made for an idle one";
  const TenantsStanding standing = relay.standing();
  EXPECT_EQ(standing.tenants, 3);
  EXPECT_EQ(standing.answered, 3);
  EXPECT_THAT(standing.troubles, IsEmpty());
}

TEST_F(TenantWork, NoticesWhatOtherProcessesAppendAndCreate) {
  TenantRelay relay{tenants, test::publishers_to(broker.url())};
  tenants.create("acme");
  std::jthread running{[&](std::stop_token stop) { relay.run(stop); }};
  Tenants elsewhere = place.open();
  elsewhere.furnish([](TenantStore& tenant) { tenant.keep<Outbox>(); });
  elsewhere.create("globex");
  JetStream streams{broker.url()};
  for (int i = 1; i <= 3; ++i) {
    test::place_order(*elsewhere.use("acme"), std::to_string(i), "jane");
    test::place_order(*elsewhere.use("globex"), std::to_string(i), "joe");
    EXPECT_TRUE(test::eventually([&] {
      return streams.streams().size() == 2 && streams.count("SHOP_acme") == i &&
             streams.count("SHOP_globex") == i;
    }));
    // Until their turns have ended.
    EXPECT_TRUE(test::eventually([&] { return relay.standing().served == 0; }));
  }
}

TEST_F(TenantWork, SharesAStreamWithOneSubjectEach) {
  TenantRelay relay{
      tenants,
      [&](const std::string& tenant, const Outbox& outbox) {
        return std::make_unique<nats::Publisher>(nats::PublisherOptions{.url = broker.url(),
                                                                        .prefix = "shop",
                                                                        .stream = "SHOP",
                                                                        .tenant = tenant,
                                                                        .fence = outbox.fence(),
                                                                        .ensure_stream = true});
      },
      {.outbox = {.fence = Fence::subject}}};
  for (const char* const name : {"acme", "globex"}) {
    tenants.create(name);
    for (const char* const id : {"1", "2"}) test::place_order(*tenants.use(name), id, "jane");
  }
  relay.run_once();
  EXPECT_THAT(subjects("SHOP"), ::testing::UnorderedElementsAre(
                                    "shop.acme.all for acme", "shop.acme.all for acme",
                                    "shop.globex.all for globex", "shop.globex.all for globex"));
  EXPECT_THAT(JetStream{broker.url()}.streams(), SizeIs(1));
}

/// Docs: the permissions of a tenant's programs.
TEST(TenantPermissions, KeepAConsumerToItsTenant) {
  const test::NatsServer server{
      "authorization { users: [ { user: relay, password: p }, { user: acme, password: p, "
      "permissions: { subscribe: [\"_INBOX.>\"], publish: [\"$JS.API.STREAM.INFO.SHOP_acme\", "
      "\"$JS.API.STREAM.MSG.GET.SHOP_acme\", \"$JS.API.CONSUMER.CREATE.SHOP_acme.>\", "
      "\"$JS.API.CONSUMER.MSG.NEXT.SHOP_acme.>\"] } } ] }\nno_auth_user: relay"};
  test::TenantPlace place;
  Tenants tenants = place.open();
  TenantRelay relay{tenants, test::publishers_to(server.url())};
  for (const char* const name : {"acme", "globex"}) {
    tenants.create(name);
    test::place_order(*tenants.use(name), "1", name);
  }
  relay.run_once();
  const std::string password = test::write_secret(place.dir.file("password"), "p\n");
  Store mine = sqlite::open(place.dir.file("mine.db"));
  std::vector<std::string> taken;
  const auto consume = [&](const std::string& stream) {
    nats::Consumer consumer{mine,
                            {.url = server.url(),
                             .credentials = {.user = "acme", .password_file = password},
                             .name = "mine",
                             .stream = stream}};
    consumer.on<test::OrderPlaced>(
        [&](Transaction&, const Recorded<test::OrderPlaced>& e) { taken.push_back(e->customer); });
    consumer.run_once();
  };
  consume("SHOP_acme");
  EXPECT_THAT(taken, ElementsAre("acme"));
  EXPECT_THROW(consume("SHOP_globex"), BrokerFailed);
  EXPECT_THAT(taken, SizeIs(1));
}

TEST_F(TenantWork, DrainsTheSuspended) {
  TenantRelay relay{tenants, test::publishers_to(broker.url())};
  tenants.create("acme");
  test::place_order(*tenants.use("acme"), "1", "jane");
  tenants.suspend("acme", "unpaid");
  relay.run_once();
  EXPECT_THAT(subjects("SHOP_acme"), SizeIs(1));
}

TEST_F(TenantWork, TakesTurns) {
  TenantRelay relay{tenants, test::publishers_to(broker.url()), {.threads = 1}};
  for (const char* const name : {"big", "small"}) tenants.create(name);
  const TenantStore big = tenants.use("big");
  for (int i = 0; i < 200; ++i) test::place_order(*big, std::to_string(i), "jane");
  test::place_order(*tenants.use("small"), "1", "joe");
  relay.run_once();
  EXPECT_EQ(JetStream{broker.url()}.count("SHOP_big"), 200);
  EXPECT_THAT(subjects("SHOP_small"), SizeIs(1));
}

TEST_F(TenantWork, SaysWhatStandsStill) {
  TenantRelay relay{tenants, test::publishers_to(broker.url())};
  for (const char* const name : {"acme", "globex"}) {
    tenants.create(name);
    test::place_order(*tenants.use(name), "1", "jane");
  }
  JetStream{broker.url()}.make_stream("OTHER", "shop.acme.>");  // another program's
  relay.run_once();
  EXPECT_THAT(subjects("SHOP_globex"), SizeIs(1));
  const auto troubles = relay.standing().troubles;
  ASSERT_THAT(troubles, SizeIs(1));
  EXPECT_EQ(troubles[0].tenant, "acme");
  EXPECT_THAT(troubles[0].what, HasSubstr("the broker is misconfigured"));
}

TEST_F(TenantWork, ProjectsIntoTablesOfEach) {
  TenantRunner runner{tenants, [](Projections& all) { all.add(Customers{}); }};
  for (const char* const name : {"acme", "globex"}) tenants.create(name);
  test::place_order(*tenants.use("acme"), "1", "jane");
  test::place_order(*tenants.use("acme"), "2", "jane");
  test::place_order(*tenants.use("globex"), "1", "joe");
  runner.run_once();
  const auto orders = [&](const char* tenant, const char* customer) {
    const TenantStore store = tenants.use(tenant);
    return ModelReader{store.store()}
        .value<std::int64_t>("SELECT orders FROM customers WHERE name = ?1", customer)
        .value_or(0);
  };
  EXPECT_EQ(orders("acme", "jane"), 2);
  EXPECT_EQ(orders("acme", "joe"), 0);
  EXPECT_EQ(orders("globex", "joe"), 1);
}

TEST_F(TenantWork, ProjectsWhileOneIsBroken) {
  TenantRunner runner{tenants, [](Projections& all) { all.add(Customers{}, {.max_attempts = 1}); }};
  for (const char* const name : {"acme", "globex", "idle"}) tenants.create(name);
  test::place_order(*tenants.use("acme"), "1", "nobody");
  std::jthread running{[&](std::stop_token stop) { runner.run(stop); }};
  Tenants elsewhere = place.open();
  test::place_order(*elsewhere.use("globex"), "1", "jane");
  EXPECT_TRUE(test::eventually([&] {
    const auto troubles = runner.standing().troubles;
    return position(elsewhere, "globex") == 1 && troubles.size() == 1 &&
           troubles[0].tenant == "acme" &&
           troubles[0].what.find("nobody orders") != std::string::npos;
  }));
  const TenantStore acme = elsewhere.use("acme");
  ProjectionOperations{acme.store()}.skip("customers", GlobalSequence{1});
  if (!test::is_on_postgres()) {
    EXPECT_TRUE(test::eventually([&] { return runner.standing().troubles.empty(); }));
  }
}

class TenantWorkOfAFile : public TenantWork {};

TEST_F(TenantWorkOfAFile, GoesOnWithoutALostStore) {
  for (const char* const name : {"acme", "globex"}) tenants.create(name);
  Tenants others = place.open();
  others.furnish([](TenantStore& tenant) { tenant.keep<Outbox>(); });
  test::place_order(*others.use("globex"), "1", "jane");
  std::filesystem::remove(tenants.place_of("acme"));
  Tenants fresh = place.open();
  TenantRelay relay{fresh, test::publishers_to(broker.url())};
  relay.run_once();
  EXPECT_THAT(subjects("SHOP_globex"), SizeIs(1));
  const TenantsStanding standing = relay.standing();
  EXPECT_EQ(standing.asked, 2);
  EXPECT_EQ(standing.answered, 1);
  ASSERT_THAT(standing.troubles, SizeIs(1));
  EXPECT_THAT(standing.troubles[0].what, HasSubstr("there is no database"));
}

}  // namespace
}  // namespace stela::tenant_work_test
