// stela: the aggregate records an event that isn't in its event set; add it
#include "../domain.hpp"

struct Noted {
  static constexpr stela::EventType event_type{"order.noted"};
};
class Order : public stela::AggregateRoot<State, Events> {
 public:
  using AggregateRoot::AggregateRoot;
  void note() { record(Noted{}); }
};
