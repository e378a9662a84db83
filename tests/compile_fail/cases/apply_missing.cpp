// stela: the state can't apply one of its events; give it `void apply(const E&)`
#include "../domain.hpp"

struct Forgetful {
  void apply(const Placed&) {}
};
class Order : public stela::AggregateRoot<Forgetful, Events> {
 public:
  using AggregateRoot::AggregateRoot;
};
Order order{stela::StreamId::of("order", "1")};
