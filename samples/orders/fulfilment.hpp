// The reaction to the payment provider's events.
#pragma once

#include "payment.hpp"
#include "shop.hpp"

#include <stela/projections.hpp>

namespace orders {

/// Ships paid orders, and releases the stock of declined ones. Its events commit with its position,
/// carry the order's correlation, and name the payment as their cause.
class Fulfilment {
 public:
  static constexpr stela::ReactionType reaction_type{"fulfilment"};
  using Events = stela::EventSet<PaymentReceived, PaymentDeclined>;

  void react(stela::UnitOfWork& unit, const stela::Recorded<PaymentReceived>& payment) {
    const auto id = OrderId::from(payment->order);
    if (!waits_for_payment(unit, id)) return;
    unit.load(id).pay(payment->reference);
    ship_and_take(unit, id, "dhl");
  }
  void react(stela::UnitOfWork& unit, const stela::Recorded<PaymentDeclined>& payment) {
    const auto id = OrderId::from(payment->order);
    if (waits_for_payment(unit, id)) cancel_and_release(unit, id, payment->reason);
  }

 private:
  /// The provider may report twice, too late, or about an unknown order.
  static bool waits_for_payment(stela::UnitOfWork& unit, const OrderId& id) {
    const Order* const order = unit.find(id);
    return order != nullptr && order->state().stage == OrderState::Stage::placed;
  }
};

}  // namespace orders
