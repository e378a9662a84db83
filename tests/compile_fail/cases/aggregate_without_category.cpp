// stela: an aggregate needs `static constexpr std::string_view category`
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  using AggregateRoot::AggregateRoot;
};
void open(stela::EventLog& log) {
  stela::Repository<Order> orders{log};
}
