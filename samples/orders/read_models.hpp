// The tables that the shop reads, each kept up to date by a projector. Their SQL is the same on
// SQLite and PostgreSQL.
#pragma once

#include "order.hpp"
#include "stock.hpp"

#include <stela/projections.hpp>

#include <string>

namespace orders {

/// Orders that wait for payment or shipment. Asynchronous.
class OpenOrders {
 public:
  static constexpr stela::ProjectorType projector_type{"open_orders", 1};
  using Events = OrderEvents;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {open_orders} (order_id TEXT PRIMARY KEY, customer TEXT NOT NULL, "
        "sku TEXT NOT NULL, quantity BIGINT NOT NULL, stage TEXT NOT NULL)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPlaced>& placed) {
    model.execute("INSERT INTO {open_orders} VALUES (?1, ?2, ?3, ?4, 'placed')",
                  placed.stream().key(), placed->customer, placed->sku, placed->quantity);
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPaid>& paid) {
    model.execute("UPDATE {open_orders} SET stage = 'paid' WHERE order_id = ?1",
                  paid.stream().key());
  }
  void project(stela::ReadModel&, const stela::Recorded<OrderReminded>&) {}
  void project(stela::ReadModel& model, const stela::Recorded<OrderShipped>& shipped) {
    close(model, shipped.stream());
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderCancelled>& cancelled) {
    close(model, cancelled.stream());
  }

 private:
  static void close(stela::ReadModel& model, const stela::StreamId& order) {
    model.execute("DELETE FROM {open_orders} WHERE order_id = ?1", order.key());
  }
};

/// The stock left of each article. Inline: a reader sees it as soon as the command returns.
class StockLevels {
 public:
  static constexpr stela::ProjectorType projector_type{"stock_levels", 1};
  using Events = StockEvents;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {stock_levels} (sku TEXT PRIMARY KEY, available BIGINT NOT NULL, "
        "reserved BIGINT NOT NULL)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<StockReceived>& received) {
    change(model, received.stream(), received->quantity, 0);
  }
  void project(stela::ReadModel& model, const stela::Recorded<StockReserved>& reserved) {
    change(model, reserved.stream(), -reserved->quantity, reserved->quantity);
  }
  void project(stela::ReadModel& model, const stela::Recorded<StockReleased>& released) {
    change(model, released.stream(), released->quantity, -released->quantity);
  }
  void project(stela::ReadModel& model, const stela::Recorded<StockTaken>& taken) {
    change(model, taken.stream(), 0, -taken->quantity);
  }

 private:
  static void change(stela::ReadModel& model, const stela::StreamId& stock, std::int64_t available,
                     std::int64_t reserved) {
    model.execute(
        "INSERT INTO {stock_levels} AS s VALUES (?1, ?2, ?3) ON CONFLICT (sku) DO UPDATE SET "
        "available = s.available + excluded.available, reserved = s.reserved + excluded.reserved",
        stock.key(), available, reserved);
  }
};

/// The sales of each day. Asynchronous.
class SalesPerDay {
 public:
  static constexpr stela::ProjectorType projector_type{"sales_per_day", 1};
  using Events = stela::EventSet<OrderPlaced>;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {sales_per_day} (day TEXT NOT NULL, currency TEXT NOT NULL, "
        "orders BIGINT NOT NULL, cents BIGINT NOT NULL, PRIMARY KEY (day, currency))");
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPlaced>& placed) {
    model.execute(
        "INSERT INTO {sales_per_day} AS s VALUES (?1, ?2, 1, ?3) ON CONFLICT (day, currency) "
        "DO UPDATE SET orders = s.orders + 1, cents = s.cents + excluded.cents",
        day_of(placed.recorded_at()), placed->price.currency, placed->price.cents);
  }

  static std::string day_of(stela::Timestamp time) { return stela::to_string(time).substr(0, 10); }
};

/// The next release also counts pieces. Its tables are filled beside those of the first version,
/// which serve until the new ones have caught up.
class SalesPerDayV2 {
 public:
  static constexpr stela::ProjectorType projector_type{"sales_per_day", 2};
  using Events = stela::EventSet<OrderPlaced>;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {sales_per_day} (day TEXT NOT NULL, currency TEXT NOT NULL, "
        "orders BIGINT NOT NULL, cents BIGINT NOT NULL, pieces BIGINT NOT NULL, "
        "PRIMARY KEY (day, currency))");
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPlaced>& placed) {
    model.execute(
        "INSERT INTO {sales_per_day} AS s VALUES (?1, ?2, 1, ?3, ?4) ON CONFLICT (day, currency) "
        "DO UPDATE SET orders = s.orders + 1, cents = s.cents + excluded.cents, "
        "pieces = s.pieces + excluded.pieces",
        SalesPerDay::day_of(placed.recorded_at()), placed->price.currency, placed->price.cents,
        placed->quantity);
  }
};

}  // namespace orders
