// What the tests of work for many tenants share: a projector, and publishers to a test's broker.
#pragma once

#include "support/orders.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox/tenant_relay.hpp>
#include <stela/projections/projections.hpp>

#include <memory>
#include <stdexcept>
#include <string>

namespace stela::test {

/// How often each customer has ordered.
class Customers {
 public:
  static constexpr ProjectorType projector_type{"customers", 1};
  using Events = EventSet<OrderPlaced>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {customers} (name TEXT PRIMARY KEY, orders INTEGER NOT NULL)");
  }
  void project(ReadModel& model, const Recorded<OrderPlaced>& e) {
    if (e->customer == "nobody") throw std::domain_error{"nobody orders"};
    const auto known =
        model.execute("UPDATE {customers} SET orders = orders + 1 WHERE name = ?1", e->customer);
    if (known == 0) model.execute("INSERT INTO {customers} VALUES (?1, 1)", e->customer);
  }
};

inline void place_order(Store& store, const std::string& id, const std::string& customer) {
  Order order = Order::place(Id<Order>::from(id), customer, 100);
  Repository<Order>{store}.save(order);
}

inline TenantRelay::MakePublisher publishers_to(const std::string& url) {
  return [url](const std::string& tenant, const Outbox&) {
    return std::make_unique<nats::Publisher>(nats::PublisherOptions{
        .url = url, .prefix = "shop", .stream = "SHOP", .tenant = tenant, .ensure_stream = true});
  };
}

}  // namespace stela::test
