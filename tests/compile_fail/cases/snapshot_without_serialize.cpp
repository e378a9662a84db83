// stela: a state with snapshots needs a cereal `serialize`
#include "../domain.hpp"

struct Versioned : State {
  static constexpr int snapshot_version = 1;
};
class Order : public stela::AggregateRoot<Versioned, Events> {
 public:
  static constexpr std::string_view category = "order";
  static constexpr auto snapshot_policy = stela::SnapshotPolicy::on_demand();
  using AggregateRoot::AggregateRoot;
};
void load(stela::EventLog& log, const stela::Id<Order>& id) {
  (void)stela::Repository<Order>{log}.load(id);
}
