// stela: then_state(State) needs a state with operator== or `serialize`
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
};
void test() {
  stela::testing::given<Order>().when([](Order&) {}).then_state(State{});
}
