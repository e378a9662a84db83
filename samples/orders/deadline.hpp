// The deadline for payment: first a reminder, then the order is cancelled.
#pragma once

#include "shop.hpp"

#include <stela/projections.hpp>

#include <chrono>

namespace orders {

struct RemindToPay {
  static constexpr stela::TimerType timer_type{"remind_to_pay", 1};
  OrderId order;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order));
  }
};
struct NotPaid {
  static constexpr stela::TimerType timer_type{"not_paid", 1};
  OrderId order;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order));
  }
};

/// A timer is a row beside the process's checkpoint. A killed worker loses none, and a payment in
/// time wins, however late the worker looks.
class PaymentDeadline {
 public:
  static constexpr stela::ProcessType process_type{"payment_deadline"};
  using Events = stela::EventSet<OrderPlaced, OrderPaid, OrderCancelled>;
  using Timers = stela::TimerSet<RemindToPay, NotPaid>;

  /// A minute can be shorter in a demonstration.
  explicit PaymentDeadline(std::chrono::milliseconds minute) : minute_{minute} {}

  void react(stela::Process& process, const stela::Recorded<OrderPlaced>& placed) {
    const auto order = OrderId::of(placed.stream());
    process.set(RemindToPay{order}, placed.recorded_at() + 10 * minute_);
    process.set(NotPaid{order}, placed.recorded_at() + 15 * minute_);
  }
  void react(stela::Process& process, const stela::Recorded<OrderPaid>&) { end(process); }
  void react(stela::Process& process, const stela::Recorded<OrderCancelled>&) { end(process); }

  void due(stela::Process& process, const RemindToPay& timer) {
    if (keeps_stock(process.unit(), timer.order)) process.unit().load(timer.order).remind();
  }
  void due(stela::Process& process, const NotPaid& timer) {
    if (keeps_stock(process.unit(), timer.order)) {
      cancel_and_release(process.unit(), timer.order, "not paid in time");
    }
  }

 private:
  static void end(stela::Process& process) {
    process.clear<RemindToPay>();
    process.clear<NotPaid>();
  }
  /// The order may have changed meanwhile. Orders of the old shop reserve no stock.
  static bool keeps_stock(stela::UnitOfWork& unit, const OrderId& id) {
    const Order& order = unit.load(id);
    if (order.state().stage != OrderState::Stage::placed) return false;
    const Stock* const stock = unit.find(StockId::from(order.state().sku));
    return stock != nullptr && stock->state().reserved.contains(id.key());
  }

  std::chrono::milliseconds minute_;
};

}  // namespace orders
