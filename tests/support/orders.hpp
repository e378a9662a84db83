// The small domain that the tests share.
#pragma once

#include <stela/framework.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace stela::test {

struct OrderPlaced {
  static constexpr EventType event_type{"order.placed", 1, should_publish};
  std::string customer;
  std::int64_t total_cents = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(total_cents));
  }
};

struct OrderNoted {
  static constexpr EventType event_type{"order.noted", 1, local};
  std::string text;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};

struct OrderShipped {
  static constexpr EventType event_type{"order.shipped", 1, should_publish};
  std::string carrier;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(carrier));
  }
};

using OrderEvents = EventSet<OrderPlaced, OrderNoted, OrderShipped>;

struct OrderState {
  enum class Stage : std::uint8_t { none, placed, shipped };
  Stage stage = Stage::none;
  std::int64_t total_cents = 0;
  std::int64_t notes = 0;

  void apply(const OrderPlaced& e) {
    stage = Stage::placed;
    total_cents = e.total_cents;
  }
  void apply(const OrderNoted&) { ++notes; }
  void apply(const OrderShipped&) { stage = Stage::shipped; }

  friend bool operator==(const OrderState&, const OrderState&) = default;
};

class Order : public AggregateRoot<OrderState, OrderEvents> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;

  static Order place(const Id<Order>& id, std::string customer, std::int64_t total_cents) {
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

}  // namespace stela::test
