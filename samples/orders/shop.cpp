#include "shop.hpp"

namespace orders {
namespace {

stela::StreamId payment_of(const OrderId& id) {
  return stela::StreamId::of("payment", id.key());
}

}  // namespace

void cancel_and_release(stela::UnitOfWork& unit, const OrderId& id, const std::string& reason) {
  Order& order = unit.load(id);
  order.cancel(reason);
  unit.load(StockId::from(order.state().sku)).release(id.key());
}

void ship_and_take(stela::UnitOfWork& unit, const OrderId& id, const std::string& carrier) {
  Order& order = unit.load(id);
  order.ship(unit.load(CustomerId::from(order.state().customer)).state(), carrier);
  unit.load(StockId::from(order.state().sku)).take(id.key());
}

void Shop::register_customer(const CustomerId& id, const std::string& name,
                             const std::string& address) {
  stela::retry([&] {
    stela::UnitOfWork unit{store_};
    Customer* const known = unit.find(id);
    (known != nullptr ? *known : unit.add(Customer{id})).be_registered(id, name, address);
    unit.commit();
  });
}

void Shop::receive(const std::string& sku, std::int64_t quantity) {
  const auto id = StockId::from(sku);
  stela::retry([&] {
    stela::UnitOfWork unit{store_};
    Stock* const known = unit.find(id);
    Stock& stock = known != nullptr ? *known : unit.add(Stock{id});
    stock.receive(quantity);
    unit.commit();
  });
}

void Shop::place(const OrderId& id, const OrderPlaced& order) {
  const stela::ContextScope scope{{.correlation_id = "order " + id.key(), .actor = order.customer}};
  stela::retry([&] {
    stela::UnitOfWork unit{store_};
    if (unit.find(CustomerId::from(order.customer)) == nullptr) {
      throw std::domain_error{"the shop knows no customer '" + order.customer + "'"};
    }
    Order* const known = unit.find(id);
    (known != nullptr ? *known : unit.add(Order{id})).place(order);
    Stock* const stock = unit.find(StockId::from(order.sku));
    if (stock == nullptr) throw std::domain_error{"the shop doesn't sell '" + order.sku + "'"};
    stock->reserve(id.key(), order.quantity);
    unit.commit();
  });
}

void Shop::payment_received(const OrderId& id, const std::string& reference) {
  const stela::ContextScope scope{{.correlation_id = "order " + id.key(), .actor = "payments"}};
  stela::UnitOfWork unit{store_};
  unit.append(payment_of(id), stela::ExpectedVersion::any(), PaymentReceived{id.key(), reference});
  unit.commit({.append_id = "payment received " + id.key()});
}

void Shop::payment_declined(const OrderId& id, const std::string& reason) {
  const stela::ContextScope scope{{.correlation_id = "order " + id.key(), .actor = "payments"}};
  stela::UnitOfWork unit{store_};
  unit.append(payment_of(id), stela::ExpectedVersion::any(), PaymentDeclined{id.key(), reason});
  unit.commit({.append_id = "payment declined " + id.key()});
}

void Shop::ship(const OrderId& id, const std::string& carrier) {
  stela::retry([&] {
    stela::UnitOfWork unit{store_};
    ship_and_take(unit, id, carrier);
    unit.commit();
  });
}

void Shop::cancel(const OrderId& id, const std::string& reason) {
  const stela::ContextScope scope{{.actor = "operator"}};
  stela::retry([&] {
    stela::UnitOfWork unit{store_};
    cancel_and_release(unit, id, reason);
    unit.commit();
  });
}

}  // namespace orders
