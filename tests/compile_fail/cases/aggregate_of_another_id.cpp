// stela: an aggregate can't be made with the id of another aggregate
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
};
struct ParcelState {
  void apply(const Shipped&) {}
};
class Parcel : public stela::AggregateRoot<ParcelState, stela::EventSet<Shipped>> {
 public:
  static constexpr std::string_view category = "parcel";
  using AggregateRoot::AggregateRoot;
};
Order order_of(const stela::Id<Parcel>& parcel) {
  return Order{parcel};
}
