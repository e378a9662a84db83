// The order: placed, then paid and shipped, or cancelled.
#pragma once

#include "customer.hpp"

#include <stela/framework.hpp>
#include <stela/framework/extern_templates.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace orders {

struct Money {
  std::int64_t cents = 0;
  std::string currency = "EUR";

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(currency));
  }
  friend bool operator==(const Money&, const Money&) = default;
};

/// The form of orders before the shop sold in more than one currency. It isn't recorded any more,
/// but stays readable for ever.
struct OrderPlacedV1 {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  std::string sku;
  std::int64_t quantity = 0;
  std::int64_t total_cents = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(sku), CEREAL_NVP(quantity), CEREAL_NVP(total_cents));
  }
};

struct OrderPlaced {
  static constexpr stela::EventType event_type{"order.placed", 2, stela::should_publish};
  using Supersedes = OrderPlacedV1;
  static OrderPlaced upcast(OrderPlacedV1 old) {
    return {std::move(old.customer), std::move(old.sku), old.quantity, {old.total_cents, "EUR"}};
  }

  /// The number of a customer. (Events of the old shop have names in clear text.)
  std::string customer;
  std::string sku;
  std::int64_t quantity = 0;
  Money price;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(sku), CEREAL_NVP(quantity), CEREAL_NVP(price));
  }
};

/// Not published: other services wait for the shipment.
struct OrderPaid {
  static constexpr stela::EventType event_type{"order.paid", 1, stela::local};
  std::string reference;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(reference));
  }
};

/// The address is sealed, also at the broker, and opens for consumers that have the keys.
struct OrderShipped {
  static constexpr stela::EventType event_type{"order.shipped", 1, stela::should_publish};
  CustomerId customer;
  stela::Personal<std::string> name;
  stela::Personal<std::string> address;
  std::string sku;
  std::int64_t quantity = 0;
  std::string carrier;
  static constexpr auto subject = &OrderShipped::customer;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(name), CEREAL_NVP(address), CEREAL_NVP(sku),
            CEREAL_NVP(quantity), CEREAL_NVP(carrier));
  }
};

struct OrderCancelled {
  static constexpr stela::EventType event_type{"order.cancelled", 1, stela::should_publish};
  std::string reason;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(reason));
  }
};

struct OrderReminded {
  static constexpr stela::EventType event_type{"order.reminded", 1, stela::should_publish};
  std::string customer;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer));
  }
};

using OrderEvents =
    stela::EventSet<OrderPlaced, OrderPaid, OrderReminded, OrderShipped, OrderCancelled>;

struct OrderState {
  enum class Stage : std::uint8_t { none, placed, paid, shipped, cancelled };
  Stage stage = Stage::none;
  std::string customer;
  std::string sku;
  std::int64_t quantity = 0;
  Money price;

  void apply(const OrderPlaced& placed) {
    stage = Stage::placed;
    customer = placed.customer;
    sku = placed.sku;
    quantity = placed.quantity;
    price = placed.price;
  }
  void apply(const OrderPaid&) { stage = Stage::paid; }
  void apply(const OrderReminded&) {}
  void apply(const OrderShipped&) { stage = Stage::shipped; }
  void apply(const OrderCancelled&) { stage = Stage::cancelled; }

  /// For `orders streams state`, which shows it as JSON. Orders have no snapshots.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(stage), CEREAL_NVP(customer), CEREAL_NVP(sku), CEREAL_NVP(quantity),
            CEREAL_NVP(price));
  }
};

constexpr std::string_view to_string(OrderState::Stage stage) noexcept {
  constexpr std::string_view names[] = {"none", "placed", "paid", "shipped", "cancelled"};
  return names[static_cast<std::size_t>(stage)];
}

class Order : public stela::AggregateRoot<OrderState, OrderEvents> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;

  void place(OrderPlaced order) {
    if (state().stage != OrderState::Stage::none) {
      throw std::domain_error{"there is such an order already"};
    }
    if (order.quantity < 1) throw std::domain_error{"an order is of one piece or more"};
    if (order.price.cents < 1) throw std::domain_error{"an order costs something"};
    record(std::move(order));
  }

  void pay(std::string reference) {
    if (state().stage != OrderState::Stage::placed) {
      throw std::domain_error{"only a placed order is paid"};
    }
    record(OrderPaid{std::move(reference)});
  }

  void remind() {
    if (state().stage != OrderState::Stage::placed) {
      throw std::domain_error{"nothing is to be paid"};
    }
    record(OrderReminded{state().customer});
  }

  void ship(const CustomerState& to, std::string carrier) {
    if (state().stage != OrderState::Stage::paid) {
      throw std::domain_error{"only a paid order ships"};
    }
    record(OrderShipped{CustomerId::from(state().customer), to.name, to.address, state().sku,
                        state().quantity, std::move(carrier)});
  }

  void cancel(std::string reason) {
    if (state().stage != OrderState::Stage::placed && state().stage != OrderState::Stage::paid) {
      throw std::domain_error{"only an order that hasn't shipped is cancelled"};
    }
    record(OrderCancelled{std::move(reason)});
  }
};

using OrderId = stela::Id<Order>;

}  // namespace orders

// Compiled in domain.cpp.
STELA_EXTERN_AGGREGATE(orders::Order);
STELA_EXTERN_EVENT(orders::OrderPlaced);
STELA_EXTERN_EVENT(orders::OrderPaid);
STELA_EXTERN_EVENT(orders::OrderReminded);
STELA_EXTERN_EVENT(orders::OrderShipped);
STELA_EXTERN_EVENT(orders::OrderCancelled);
