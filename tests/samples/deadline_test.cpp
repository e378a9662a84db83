#include "deadline.hpp"

#include <stela/projections_testing/process_scenario.hpp>

#include <gtest/gtest.h>

namespace orders::deadline_test {
namespace {

using namespace std::chrono_literals;
using stela::testing::on;
using stela::testing::ProcessScenario;

const OrderPlaced ada_orders{"Ada", "lamp", 2, {4200, "EUR"}};

TEST(PaymentDeadline, RemindsAndThenCancels) {
  ProcessScenario{PaymentDeadline{1min}}
      .given("stock-lamp", StockReceived{5}, StockReserved{"1", 2})
      .given("order-1", ada_orders)
      .after(10min)
      .then(on("order-1", OrderReminded{"Ada"}))
      .after(5min)
      .then(on("order-1", OrderCancelled{"not paid in time"}),
            on("stock-lamp", StockReleased{"1", 2}));
}

TEST(PaymentDeadline, EndsWithAPayment) {
  ProcessScenario{PaymentDeadline{1min}}
      .given("stock-lamp", StockReceived{5}, StockReserved{"1", 2})
      .given("order-1", ada_orders)
      .after(14min)
      .given("order-1", OrderPaid{"visa"})
      .then_timers({})
      .after(24h)
      .then_nothing();
}

TEST(PaymentDeadline, LeavesOrdersWithoutStockAlone) {
  ProcessScenario{PaymentDeadline{1min}}.given("order-1", ada_orders).after(24h).then_nothing();
}

}  // namespace
}  // namespace orders::deadline_test
