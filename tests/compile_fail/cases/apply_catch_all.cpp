// stela: the state has a catch-all `apply`, which would swallow events without a handler
#include "../domain.hpp"

struct Greedy {
  void apply(const auto&) {}
};
class Order : public stela::AggregateRoot<Greedy, Events> {
 public:
  using AggregateRoot::AggregateRoot;
};
Order order{stela::StreamId::of("order", "1")};
