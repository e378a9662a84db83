// stela: the first tag of the event names an aggregate that doesn't have the event in its event
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
};
struct Returned {
  static constexpr stela::EventType event_type{"order.returned"};
  stela::Id<Order> order;
  static constexpr auto tags = stela::tags(&Returned::order);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order));
  }
};
void record(stela::Decision& decision) {
  decision.record(Returned{});
}
