// A black box: many tenants under load, with workers and writers that are killed, tenants that are
// suspended and stores that are gone for a while. Each tenant's stream and table have its own
// events, all of them, once and in order. STELA_TENANTS_SECONDS makes it longer,
// STELA_TENANTS_COUNT larger.
#include "nats/jetstream.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "tenants/customers.hpp"
#include "tenants/tenant_place.hpp"

#include <stela/outbox/operations.hpp>
#include <stela/projections/detail/model_reader.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/tenant_runner.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

namespace stela::isolation_test {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::Process;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t most_tenants = 1'000;

int setting(const char* name, int standard) {
  const char* const text = std::getenv(name);
  return text == nullptr ? standard : std::atoi(text);
}

struct Counts {
  /// Orders that a writer was told are stored, by tenant.
  std::array<std::atomic<std::int64_t>, most_tenants> acknowledged{};
};

class Isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::is_on_postgres()) return;
    // Three processes with many stores have many connections.
    server.emplace(test::PostgresServer::Options{.settings = "max_connections = 300"});
    place.registry = place.at = server->url();
  }

  static std::string name_of(int i) { return "t" + std::to_string(i); }

  /// Relays and projects for all of them until it is killed.
  void work() const {
    Tenants tenants = place.open();
    TenantRelay relay{tenants, test::publishers_to(broker.url()), {.threads = 3}};
    TenantRunner runner{
        tenants, [](Projections& all) { all.add(test::Customers{}); }, {.threads = 3}};
    const std::jthread relaying{[&](std::stop_token stop) { relay.run(stop); }};
    runner.run({});
  }

  void write(unsigned seed) const {
    Tenants tenants = place.open();
    tenants.furnish([](TenantStore& tenant) { tenant.keep<Outbox>(); });
    std::mt19937 random{seed};
    for (std::int64_t n = 0;; ++n) {
      const int i = static_cast<int>(random() % static_cast<unsigned>(count));
      const std::string id = std::to_string(seed) + "-" + std::to_string(n);
      try {
        test::place_order(*tenants.use(name_of(i)), id, name_of(i));
        counts->acknowledged[static_cast<std::size_t>(i)].fetch_add(1);
      } catch (const StoreSuspended&) {
      } catch (const StoreBusy&) {
      } catch (const StoreFailed&) {
        // Its file is away.
      }
      test::is_stopped_within(2ms, {});
    }
  }

  /// What an operator does in a process of its own.
  static void act(const std::function<void()>& work) { EXPECT_EQ(Process{work}.wait(), 0); }

  /// Suspends one tenant, and takes the file of another away for a moment.
  void disturb(std::mt19937& random) {
    const std::string one = name_of(static_cast<int>(random() % static_cast<unsigned>(count)));
    act([&] { place.open().suspend(one, "test"); });
    test::is_stopped_within(300ms, {});
    act([&] { place.open().resume(one); });
  }

  void check(Tenants& tenants, const std::string& name, std::int64_t acknowledged) {
    SCOPED_TRACE(name);
    TenantStore tenant = tenants.use(name);
    std::vector<std::string> stored;
    for (const StoredEvent& event : tenant->read_all()) {
      EXPECT_NE(event.payload.find("\"" + name + "\""), std::string::npos) << event.payload;
      stored.push_back(event.id.to_string());
    }
    EXPECT_GE(std::ssize(stored), acknowledged);
    std::vector<std::string> published;
    if (!stored.empty()) {
      for (const auto& message : JetStream{broker.url()}.drain("SHOP_" + name)) {
        published.push_back(message.headers.at("ce-id"));
        EXPECT_EQ(message.headers.at("ce-tenant"), name);
        EXPECT_EQ(message.headers.at("Stela-Store"), tenant->id().to_string());
        EXPECT_EQ(message.subject, "shop." + name + ".order.placed");
      }
    }
    EXPECT_EQ(published, stored);
    const Rows rows = ModelReader{tenant.store()}.query("SELECT name, orders FROM customers");
    ASSERT_THAT(rows, SizeIs(stored.empty() ? 0 : 1));
    if (stored.empty()) return;
    EXPECT_EQ(rows[0].get<std::string>("name"), name);
    EXPECT_EQ(rows[0].get<std::int64_t>("orders"), std::ssize(stored));
  }

  test::NatsServer broker;
  test::TenantPlace place;
  std::optional<test::PostgresServer> server;
  test::Shared<Counts> counts;
  const int count = setting("STELA_TENANTS_COUNT", test::is_on_postgres() ? 6 : 12);
};

TEST_F(Isolation, HoldsWhileWorkersAndWritersAreKilled) {
  act([&] {
    Tenants tenants = place.open();
    tenants.furnish([](TenantStore& tenant) { tenant.keep<Outbox>(); });
    for (int i = 0; i < count; ++i) tenants.create(name_of(i));
  });
  std::mt19937 random{1};
  unsigned seed = 1;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds{setting("STELA_TENANTS_SECONDS", 8)};
  while (std::chrono::steady_clock::now() < end) {
    Process one{[&] { work(); }};
    Process two{[&] { work(); }};
    Process writer{[&, of_this = seed++] { write(of_this); }};
    test::is_stopped_within(800ms, {});
    disturb(random);
    EXPECT_TRUE(one.is_running() && two.is_running() && writer.is_running());
    writer.kill();
    one.kill();
    // The other one goes on for a while without it.
    test::is_stopped_within(std::chrono::milliseconds{random() % 400}, {});
    two.kill();
  }
  Tenants tenants = place.open();
  TenantRelay relay{tenants, test::publishers_to(broker.url())};
  TenantRunner runner{tenants, [](Projections& all) { all.add(test::Customers{}); }};
  // Leases of the killed run out first.
  EXPECT_TRUE(test::eventually(
      [&] {
        relay.run_once();
        runner.run_once();
        bool is_done = true;
        for (int i = 0; i < count; ++i) {
          TenantStore tenant = tenants.use(name_of(i));
          const auto status = ProjectionOperations{tenant.store()}.status();
          is_done = is_done && OutboxOperations{tenant.store()}.status().pending == 0 &&
                    (tenant->last_sequence().value() == 0 ||
                     (!status.empty() && status.front().lag_events == 0));
        }
        return is_done;
      },
      120s));
  EXPECT_THAT(relay.standing().troubles, IsEmpty());
  for (int i = 0; i < count; ++i) {
    check(tenants, name_of(i), counts->acknowledged[static_cast<std::size_t>(i)]);
  }
}

}  // namespace
}  // namespace stela::isolation_test
