// stela: a category is 1 to 64 characters of a-z, 0-9 and '_', the first a letter
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "sales-order";
  using AggregateRoot::AggregateRoot;
};
void open(stela::EventLog& log) {
  stela::Repository<Order> orders{log};
}
