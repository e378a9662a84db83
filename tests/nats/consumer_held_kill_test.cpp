// Consumers whose handlers fail now and then are killed at any time: each effect happens once, and
// in the order of its stream.
#include "nats/killed_pairs.hpp"
#include "nats/shop.hpp"
#include "support/fault_vfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <stdexcept>

namespace stela::consumer_held_kill_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderShipped;

constexpr int parcels = 6;
constexpr int events = 15;

/// What one process does until its n-th write kills it.
struct Consuming {
  std::string database;
  std::string url;
  unsigned seed = 0;
  int fatal_write = 0;

  void run() const {
    test::DieAtNthWrite death{fatal_write};
    const test::FaultVfs vfs{death};
    Ledger ledger{database, {.vfs = vfs.name()}};
    nats::Consumer consumer{ledger.store,
                            {.url = url,
                             .name = "billing",
                             .stream = "SHOP",
                             .batch_size = 7,
                             .ack_wait = 1'000ms,
                             .retry_backoff = 10ms,
                             .retry_backoff_max = 50ms,
                             .max_attempts = 1'000'000}};
    std::minstd_rand random{seed};
    consumer.on<OrderShipped>([&](Transaction& transaction, const auto& shipped) {
      if (random() % 4 == 0) throw std::runtime_error{"now and then"};
      Ledger::note(transaction, shipped);
    });
    consumer.run({});
  }
};

class KillingWhileHeld : public ::testing::Test {
 protected:
  void SetUp() override {
    // In a process of its own: a fork is only sound before there are threads.
    test::Process publisher{[this] {
      test::Shop shop{dir.file("shop.db"), server.url()};
      for (int i = 0; i < events * parcels; ++i) {
        UnitOfWork unit{shop.store};
        unit.append(StreamId::of("parcel", std::to_string(i % parcels)), ExpectedVersion::any(),
                    OrderShipped{"dhl"});
        unit.commit();
      }
      while (shop.publish().published > 0) {
      }
    }};
    ASSERT_EQ(publisher.wait(), 0);
    Ledger{database}.lines();
  }
  std::int64_t count(const std::string& sql) {
    test::RawSqlite raw{database};
    // After a death somebody may be recovering the log.
    sqlite3_busy_timeout(raw.handle(), 10'000);
    return raw.integer(sql);
  }
  bool is_done() { return count("SELECT count(*) FROM ledger") >= events * parcels; }

  test::TempDir dir;
  test::NatsServer server;
  const std::string database = dir.file("billing.db");
};

TEST_F(KillingWhileHeld, LeavesEachEffectOnceAndInOrder) {
  std::minstd_rand random{20261122};
  std::uniform_int_distribution<int> fatal_write{20, 300};
  const auto next = [&] {
    const Consuming one{database, server.url(), static_cast<unsigned>(random()),
                        fatal_write(random)};
    return [one] { one.run(); };
  };

  const auto pairs = test::run_killed_pairs(next, [this] { return is_done(); });

  EXPECT_TRUE(pairs.is_done);
  EXPECT_GE(pairs.deaths, 2);
  std::map<std::string, int> versions;
  const auto lines = test::RawSqlite{database}.rows("SELECT line FROM ledger ORDER BY entry");
  for (const std::string& line : lines) {
    const std::string stream = line.substr(0, line.find('@'));
    EXPECT_EQ(line, stream + '@' + std::to_string(++versions[stream]) + " order.shipped");
  }
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(events * parcels));
  EXPECT_EQ(count("SELECT count(*) FROM inbox_gaps"), 0);
  EXPECT_EQ(count("SELECT count(*) FROM inbox_dead_letters"), 0);
}

}  // namespace
}  // namespace stela::consumer_held_kill_test
