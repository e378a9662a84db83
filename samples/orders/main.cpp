// The order application: places and ships a few orders, and shows where their events went.
//
// orders FILE [NATS-URL]
#include "order.hpp"
#include "order_totals.hpp"

#include <stela/eventstore.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using orders::Order;
using orders::OrderState;

struct NewOrder {
  const char* key;
  const char* customer;
  std::int64_t total_cents;
};

constexpr NewOrder new_orders[] = {
    {"1001", "Ada", 4'200}, {"1002", "Grace", 15'990}, {"1003", "Edsger", 700}};

const char* in_words(OrderState::Stage stage) {
  switch (stage) {
    case OrderState::Stage::none:
      return "unknown";
    case OrderState::Stage::placed:
      return "placed";
    case OrderState::Stage::shipped:
      return "shipped";
  }
  return "?";
}

void place_and_ship(stela::EventStore& store) {
  stela::Repository<Order> orders{store};
  for (const NewOrder& wanted : new_orders) {
    const auto id = stela::Id<Order>::from(wanted.key);
    if (orders.find(id)) continue;
    const stela::ContextScope scope{{.correlation_id = "checkout-" + id.key(), .actor = "web"}};
    Order order = Order::place(id, wanted.customer, wanted.total_cents);
    orders.save(order);
  }
  stela::retry([&] {
    Order order = orders.load(stela::Id<Order>::from("1001"));
    if (order.state().stage == OrderState::Stage::shipped) return;
    order.note("fragile");
    order.ship("dhl");
    orders.save(order);
  });
}

void show_events(stela::EventStore& store) {
  std::cout << "\nEvents\n";
  for (const stela::StoredEvent& event : store.read_all()) {
    std::cout << "  " << event.sequence.value() << "  " << event.stream.name() << '@'
              << event.version.value() << "  " << event.type() << "  " << event.payload
              << (event.publishes() ? "  → outbox" : "") << '\n';
  }
}

void show_orders(stela::EventStore& store) {
  std::cout << "\nOrders\n";
  stela::Repository<Order> orders{store};
  for (const NewOrder& known : new_orders) {
    const Order order = orders.load(stela::Id<Order>::from(known.key));
    std::cout << "  " << order.stream().key() << "  " << in_words(order.state().stage) << "  "
              << order.state().total_cents << " cents, version " << order.version().value() << '\n';
  }
}

void relay(stela::Outbox& outbox, const std::string& url) {
  stela::nats::Publisher broker{
      {.url = url, .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
  stela::Relay relay{outbox, broker};
  const stela::RelayTick tick = relay.tick();
  std::cout << "\nRelayed " << tick.published << " messages to the stream SHOP at " << url << '\n';
  if (tick.failed() > 0) throw std::runtime_error{"some messages weren't acknowledged"};
}

int run(const std::vector<std::string>& arguments) {
  auto store = stela::sqlite::open(arguments.at(0));
  stela::Outbox outbox{store};
  stela::Runner runner{store};
  runner.add(orders::OrderTotals{});

  place_and_ship(store);
  runner.catch_up();
  show_events(store);
  show_orders(store);
  if (arguments.size() > 1) relay(outbox, arguments[1]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  if (arguments.empty() || arguments.size() > 2) {
    std::cerr << "usage: orders FILE [NATS-URL]\n";
    return 2;
  }
  try {
    return run(arguments);
  } catch (const std::exception& e) {
    std::cerr << "orders: " << e.what() << '\n';
    return 1;
  }
}
