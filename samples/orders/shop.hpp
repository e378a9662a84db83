// The shop's operations, each in one transaction.
#pragma once

#include "order.hpp"
#include "payment.hpp"
#include "stock.hpp"

#include <cstdint>
#include <string>

namespace orders {

/// The application's commands. Each runs again when it loses a race. Threads: as its store.
class Shop {
 public:
  /// `store` must outlive the shop.
  explicit Shop(stela::EventStore& store) noexcept : store_{store} {}

  void register_customer(const CustomerId& id, const std::string& name, const std::string& address);
  void receive(const std::string& sku, std::int64_t quantity);
  /// Two aggregates in one transaction: the order and its reserved stock.
  void place(const OrderId& id, const OrderPlaced& order);
  /// Events without an aggregate, from the provider. If reported twice, they are stored once.
  void payment_received(const OrderId& id, const std::string& reference);
  void payment_declined(const OrderId& id, const std::string& reason);
  void ship(const OrderId& id, const std::string& carrier);
  void cancel(const OrderId& id, const std::string& reason);

 private:
  stela::EventStore& store_;
};

/// Releases an order's reserved stock. Used by the shop and by the process.
void cancel_and_release(stela::UnitOfWork& unit, const OrderId& id, const std::string& reason);
/// Ships a paid order to its customer and takes its stock.
void ship_and_take(stela::UnitOfWork& unit, const OrderId& id, const std::string& carrier);

}  // namespace orders
