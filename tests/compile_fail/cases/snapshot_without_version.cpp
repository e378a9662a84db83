// stela: a state with snapshots needs `static constexpr int snapshot_version = 1;`
#include "../domain.hpp"

class Order : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "order";
  static constexpr auto snapshot_policy = stela::SnapshotPolicy::every(100);
  using AggregateRoot::AggregateRoot;
};
void load(stela::EventLog& log, const stela::Id<Order>& id) {
  (void)stela::Repository<Order>{log}.load(id);
}
