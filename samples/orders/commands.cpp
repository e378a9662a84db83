#include "commands.hpp"

#include <charconv>
#include <iostream>

namespace orders {
namespace {

using Arguments = std::span<const std::string>;

void receive(Application& application, Arguments arguments) {
  Shop{application.store}.receive(arguments[0], number(arguments[1], "QUANTITY"));
  std::cout << "received " << arguments[1] << " × " << arguments[0] << '\n';
}

void register_customer(Application& application, Arguments arguments) {
  const auto id = CustomerId::from(arguments[0]);
  Shop{application.store}.register_customer(id, arguments[1], arguments[2]);
  std::cout << "registered customer " << id.key() << '\n';
}

void place(Application& application, Arguments arguments) {
  const auto id = OrderId::from(arguments[0]);
  const OrderPlaced order{arguments[1], arguments[2], number(arguments[3], "QUANTITY"),
                          Money{.cents = number(arguments[4], "CENTS"),
                                .currency = arguments.size() > 5 ? arguments[5] : "EUR"}};
  Shop{application.store}.place(id, order);
  std::cout << "placed " << id.key() << '\n';
}

void pay(Application& application, Arguments arguments) {
  const std::string reference = arguments.size() > 1 ? arguments[1] : "card";
  Shop{application.store}.payment_received(OrderId::from(arguments[0]), reference);
  std::cout << "payment received for " << arguments[0] << '\n';
}

void decline(Application& application, Arguments arguments) {
  const std::string reason = arguments.size() > 1 ? arguments[1] : "card declined";
  Shop{application.store}.payment_declined(OrderId::from(arguments[0]), reason);
  std::cout << "payment declined for " << arguments[0] << '\n';
}

void ship(Application& application, Arguments arguments) {
  Shop{application.store}.ship(OrderId::from(arguments[0]), arguments[1]);
  std::cout << "shipped " << arguments[0] << " with " << arguments[1] << '\n';
}

void cancel(Application& application, Arguments arguments) {
  Shop{application.store}.cancel(OrderId::from(arguments[0]), arguments[1]);
  std::cout << "cancelled " << arguments[0] << '\n';
}

constexpr Command all[] = {
    {"register", "CUSTOMER NAME ADDRESS", "a new customer, by a number", 3, 3, register_customer},
    {"receive", "SKU QUANTITY", "put pieces of an article into stock", 2, 2, receive},
    {"place", "ORDER CUSTOMER SKU QUANTITY CENTS [CURRENCY]", "place an order, and keep its stock",
     5, 6, place},
    {"pay", "ORDER [REFERENCE]", "the payment provider says: paid", 1, 2, pay},
    {"decline", "ORDER [REASON]", "the payment provider says: declined", 1, 2, decline},
    {"list", "[orders|stock|sales]", "the read models", 0, 1, list},
    {"rebuild", "PROJECTOR", "rebuild a read model beside the living one", 1, 1, rebuild},
    {"ship", "ORDER CARRIER", "ship a paid order by hand", 2, 2, ship},
    {"cancel", "ORDER REASON", "cancel an order, and give its stock back", 2, 2, cancel},
    {"show", "ORDER", "an order and all that happened to it", 1, 1, show},
    {"at", "ORDER VERSION|TIME", "an order as it was", 2, 2, show_at},
    {"work", "NATS-URL [--until-empty]", "relay, react and project until stopped", 1, 2, work},
    {"wire", "NATS-URL [SEQUENCE]", "compare JetStream with the store, or show a message", 1, 2,
     show_wire},
    {"load", "N [THREADS]", "place N orders as fast as it goes", 1, 2, load},
};

}  // namespace

std::span<const Command> commands() noexcept {
  return all;
}

std::int64_t number(const std::string& text, std::string_view what) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) {
    throw stela::UsageError{std::string{what} + " is a whole number, not '" + text + "'"};
  }
  return value;
}

}  // namespace orders
