// Orders for people: what they are, were, and what happened to them.
#include "commands.hpp"

#include <iostream>

namespace orders {
namespace {

void print(const Order& order) {
  const OrderState& state = order.state();
  std::cout << order.stream().key() << "  " << to_string(state.stage) << "  " << state.quantity
            << " × " << state.sku << " for " << state.customer << ", " << state.price.cents << ' '
            << state.price.currency << " cents  (version " << order.version().value() << ")\n";
}

void print(const stela::StoredEvent& event) {
  std::cout << "  " << event.sequence.value() << "  "
            << stela::to_string(event.recorded_at).substr(11, 12) << "  " << event.stream.name()
            << '@' << event.version.value() << "  " << event.type() << " v"
            << event.schema_version() << "  " << event.payload
            << (event.publishes() ? "  → outbox" : "") << '\n';
}

/// "5" is a version, anything else a time.
stela::Moment moment(const std::string& text) {
  if (const auto time = stela::parse_timestamp(text)) return stela::as_of(*time);
  return stela::at_version(stela::StreamVersion{number(text, "VERSION or TIME (RFC 3339)")});
}

}  // namespace

void show(Application& application, std::span<const std::string> arguments) {
  const auto id = OrderId::from(arguments[0]);
  print(stela::Repository<Order>{application.store}.load(id));
  const std::string correlation = "order " + id.key();
  for (const stela::StoredEvent& event : application.store.read_all()) {
    if (event.stream == id.stream() || event.correlation == correlation) print(event);
  }
}

void show_at(Application& application, std::span<const std::string> arguments) {
  const auto id = OrderId::from(arguments[0]);
  print(stela::Repository<Order>{application.store}.load(id, moment(arguments[1])));
}

}  // namespace orders
