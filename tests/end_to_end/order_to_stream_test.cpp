#include "support/nats_server.hpp"
#include "support/orders.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nats/nats.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

namespace stela::order_to_stream_test {
namespace {

using ::testing::ElementsAre;

class OrderTotals {
 public:
  static constexpr ProjectorType projector_type{"order_totals", 1};
  using Events = EventSet<test::OrderPlaced>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {order_totals} (stream TEXT PRIMARY KEY, total INTEGER) STRICT");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& placed) {
    model.execute("INSERT INTO {order_totals} VALUES (?1, ?2)", placed.stream().name(),
                  placed->total_cents);
  }
};

/// The JetStream stream SHOP, read message by message.
class JetStream {
 public:
  explicit JetStream(const std::string& url) {
    natsConnection_ConnectTo(&connection_, url.c_str());
    natsConnection_JetStream(&context_, connection_, nullptr);
  }
  ~JetStream() {
    jsCtx_Destroy(context_);
    natsConnection_Destroy(connection_);
  }

  std::vector<std::string> messages() {
    std::vector<std::string> all;
    natsMsg* message = nullptr;
    for (std::uint64_t at = 1;
         js_GetMsg(&message, context_, "SHOP", at, nullptr, nullptr) == NATS_OK; ++at) {
      all.push_back(std::string{natsMsg_GetSubject(message)} + ' ' +
                    std::string{natsMsg_GetData(message),
                                static_cast<std::size_t>(natsMsg_GetDataLength(message))});
      natsMsg_Destroy(message);
    }
    return all;
  }

 private:
  natsConnection* connection_ = nullptr;
  jsCtx* context_ = nullptr;
};

std::vector<std::string> totals_in(const std::string& path) {
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  std::vector<std::string> rows;
  const auto add = [](void* all, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(all)->push_back(std::string{values[0]} + ' ' +
                                                           values[1]);
    return 0;
  };
  sqlite3_exec(database, "SELECT stream, total FROM order_totals ORDER BY stream", add, &rows,
               nullptr);
  sqlite3_close(database);
  return rows;
}

TEST(EndToEnd, ASavedOrderReachesTheStreamAndAReadModel) {
  const test::TempDir dir;
  const test::NatsServer server;
  auto store = sqlite::open(dir.file("shop.db"));
  Outbox outbox{store};
  nats::Publisher publisher{
      {.url = server.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
  Relay relay{outbox, publisher};
  Projections projections{store};
  projections.add(OrderTotals{});
  Runner runner{projections};

  Repository<test::Order> orders{store};
  auto order = test::Order::place(Id<test::Order>::from("7"), "jane", 4200);
  order.note("gift");
  order.ship("dhl");
  orders.save(order);
  const RelayTick tick = relay.run_once();
  runner.run_once();
  JetStream stream{server.url()};

  EXPECT_EQ(tick.published, 2);
  EXPECT_THAT(stream.messages(),
              ElementsAre(R"(shop.order.placed {"customer":"jane","total_cents":4200})",
                          R"(shop.order.shipped {"carrier":"dhl"})"));
  EXPECT_THAT(totals_in(dir.file("shop.db")), ElementsAre("order-7 4200"));
  EXPECT_EQ(relay.run_once().published, 0);
}

}  // namespace
}  // namespace stela::order_to_stream_test
