// stela: when() takes a callable of the aggregate, or one that makes it
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
};
void test() {
  (void)stela::testing::given<Order>().when([](int) {});
}
