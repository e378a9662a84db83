// The domain: an order is placed, and shipped once.
#pragma once

#include <stela/framework.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace orders {

struct OrderPlaced {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  std::int64_t total_cents = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(total_cents));
  }
};

struct OrderShipped {
  static constexpr stela::EventType event_type{"order.shipped", 1, stela::should_publish};
  std::string carrier;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(carrier));
  }
};

/// Nobody outside is told: what the warehouse wrote on the parcel.
struct OrderNoted {
  static constexpr stela::EventType event_type{"order.noted", 1, stela::local};
  std::string text;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};

using OrderEvents = stela::EventSet<OrderPlaced, OrderShipped, OrderNoted>;

struct OrderState {
  enum class Stage : std::uint8_t { none, placed, shipped };
  Stage stage = Stage::none;
  std::int64_t total_cents = 0;

  void apply(const OrderPlaced& placed) {
    stage = Stage::placed;
    total_cents = placed.total_cents;
  }
  void apply(const OrderShipped&) { stage = Stage::shipped; }
  void apply(const OrderNoted&) {}
};

class Order : public stela::AggregateRoot<OrderState, OrderEvents> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;

  static Order place(const stela::Id<Order>& id, std::string customer, std::int64_t total_cents) {
    if (total_cents <= 0) throw std::domain_error{"an order costs something"};
    Order order{id};
    order.record(OrderPlaced{std::move(customer), total_cents});
    return order;
  }

  void note(std::string text) { record(OrderNoted{std::move(text)}); }

  void ship(std::string carrier) {
    if (state().stage != OrderState::Stage::placed) {
      throw std::domain_error{"only a placed order ships"};
    }
    record(OrderShipped{std::move(carrier)});
  }
};

}  // namespace orders
