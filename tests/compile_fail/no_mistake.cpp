// The program that every case breaks in one place: it compiles, so a case fails for its mistake.
#include "domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
  void ship() { record(Shipped{}); }
};

void ship(stela::EventLog& log, const stela::Id<Order>& id) {
  stela::Repository<Order> orders{log};
  Order order = orders.load(id);
  order.ship();
  orders.save(order);
}

void hold(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<int>{});
}

void book(stela::EventLog& log, const stela::Id<Room>& room) {
  stela::decide(log, Bookings{room}, [&](stela::Decision& decision, const Bookings& bookings) {
    if (bookings.count == 0) decision.record(Booked{room});
  });
}

void test() {
  stela::testing::given<Order>(Placed{"jane"}).when(&Order::ship).then(Shipped{});
}
