// stela: then() names an event that isn't in the aggregate's event set
#include "../domain.hpp"

struct Noted {
  static constexpr stela::EventType event_type{"order.noted"};
};
class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
};
void test() {
  stela::testing::given<Order>().when([](Order&) {}).then(Noted{});
}
