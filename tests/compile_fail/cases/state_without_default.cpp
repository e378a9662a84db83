// stela: a state must be default constructible
#include "../domain.hpp"

struct Needy : State {
  explicit Needy(int) {}
};
class Order : public stela::AggregateRoot<Needy, Events> {
 public:
  using AggregateRoot::AggregateRoot;
};
Order order{stela::StreamId::of("order", "1")};
