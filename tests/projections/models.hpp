// The projectors that the tests share, and what they end in.
#pragma once

#include "support/engine.hpp"
#include "support/histories.hpp"
#include "support/orders.hpp"

#include <stela/projections.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::test {

/// A row for each order. `on_event` is called before each event, if it is set.
template <int version>
class Totals {
 public:
  static constexpr ProjectorType projector_type{"totals", version};
  using Events = OrderEvents;
  using Hook = std::function<void(ReadModel&, const StoredEvent&)>;

  explicit Totals(Hook on_event = {}) : on_event_{std::move(on_event)} {}

  void create(ReadModel& model) {
    model.execute(
        "CREATE TABLE {orders} (id TEXT PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT "
        "NULL, notes INTEGER NOT NULL, carrier TEXT)");
    model.execute("CREATE INDEX {orders_by_customer} ON {orders} (customer)");
  }
  void project(ReadModel& model, const Recorded<OrderPlaced>& e) {
    before(model, e.record());
    model.execute("INSERT INTO {orders} VALUES (?1, ?2, ?3, 0, NULL)", e.stream().key(),
                  e->customer, e->total_cents * version);
  }
  void project(ReadModel& model, const Recorded<OrderNoted>& e) {
    before(model, e.record());
    model.execute("UPDATE {orders} SET notes = notes + 1 WHERE id = ?1", e.stream().key());
  }
  void project(ReadModel& model, const Recorded<OrderShipped>& e) {
    before(model, e.record());
    model.execute("UPDATE {orders} SET carrier = ?2 WHERE id = ?1", e.stream().key(), e->carrier);
  }

 private:
  void before(ReadModel& model, const StoredEvent& event) {
    if (on_event_) on_event_(model, event);
  }

  Hook on_event_;
};

/// How many events there are of each type, whatever they are about.
class Counts {
 public:
  static constexpr ProjectorType projector_type{"counts", 1};
  using Events = EventSet<OrderPlaced, OrderShipped>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {counts} (type TEXT PRIMARY KEY, n INTEGER NOT NULL)");
  }
  void project(ReadModel& model, const Recorded<OrderPlaced>& e) { count(model, e.record()); }
  void project(ReadModel& model, const Recorded<OrderShipped>& e) { count(model, e.record()); }

 private:
  static void count(ReadModel& model, const StoredEvent& event) {
    model.execute(
        "INSERT INTO {counts} VALUES (?1, 1) ON CONFLICT (type) DO UPDATE SET n = {counts}.n + 1",
        event.type());
  }
};

/// Throws at the events with these sequences, for as long as they stand there.
inline Totals<1>::Hook throwing_at(std::shared_ptr<std::vector<std::int64_t>> sequences) {
  return [sequences](ReadModel&, const StoredEvent& event) {
    for (const std::int64_t one : *sequences) {
      if (one == event.sequence.value()) throw std::runtime_error{"can't take it"};
    }
  };
}

/// One line for each row.
inline std::vector<std::string> lines(const Rows& rows) {
  std::vector<std::string> all;
  for (const Row row : rows) {
    std::string line;
    for (const std::string& column : rows.columns()) {
      const SqlCell& cell = row.cell(column);
      if (!line.empty()) line += ' ';
      if (const auto* const number = std::get_if<std::int64_t>(&cell)) {
        line += std::to_string(*number);
      } else if (const auto* const text = std::get_if<std::string>(&cell)) {
        line += *text;
      } else {
        line += '-';
      }
    }
    all.push_back(std::move(line));
  }
  return all;
}

inline std::vector<std::string> orders_in(Store& store) {
  return lines(ModelReader{store}.query("SELECT * FROM orders ORDER BY id"));
}

inline void place(EventStore& store, const std::string& key, std::int64_t cents = 100) {
  Repository<Order> orders{store};
  Order order = Order::place(Id<Order>::from(key), "jane", cents);
  orders.save(order);
}
inline void note(EventStore& store, const std::string& key) {
  Repository<Order> orders{store};
  Order order = orders.load(Id<Order>::from(key));
  order.note("n");
  orders.save(order);
}
inline void ship(EventStore& store, const std::string& key, std::string carrier = "dhl") {
  Repository<Order> orders{store};
  Order order = orders.load(Id<Order>::from(key));
  order.ship(std::move(carrier));
  orders.save(order);
}

/// Tables, views and indexes by their names: "orders", "totals@1.orders".
inline std::vector<std::string> objects_in(Store& store, std::string_view pattern) {
  return lines(ModelReader{store}.query(
      is_on_postgres() ? "SELECT relname AS name FROM pg_class WHERE relname LIKE ?1 AND "
                         "relnamespace = to_regnamespace(quote_ident(current_schema())) ORDER BY 1"
                       : "SELECT name FROM sqlite_schema WHERE name LIKE ?1 ORDER BY name",
      pattern));
}

/// "totals@1 v1 living 3", with what is wrong behind it.
inline std::vector<std::string> standing(Store& store) {
  std::vector<std::string> all;
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    std::string line = one.name + '@' + std::to_string(one.build) + " v" +
                       std::to_string(one.version) + ' ' + std::string{to_string(one.state)} + ' ' +
                       std::to_string(one.position.value());
    if (one.failing.value() > 0) {
      line += (one.stopped ? " stopped at " : " retries ") + std::to_string(one.failing.value());
    } else if (one.stopped) {
      line += " stopped";
    }
    all.push_back(line);
  }
  return all;
}

}  // namespace stela::test
