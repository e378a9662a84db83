// stela: an aggregate must be constructible from its stream id
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  Order() : AggregateRoot{stela::StreamId::of(category, "1")} {}
};
void open(stela::EventLog& log) {
  stela::Repository<Order> orders{log};
}
