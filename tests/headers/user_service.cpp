// A service as users write it, around the program next to this: it projects, reacts and publishes.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>
#include <stela/projections_testing/projector_scenario.hpp>
#include <stela/projections_testing/reaction_scenario.hpp>
#include <stela/testing/memory_store.hpp>

#include <thread>

struct Placed {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  std::int64_t cents = 0;
  std::optional<double> discount;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(cents), CEREAL_NVP(discount));
  }
};
struct Cancelled {
  static constexpr stela::EventType event_type{"order.cancelled", 1, stela::local};
};
struct OrderState {
  bool is_cancelled = false;
  void apply(const Placed&) {}
  void apply(const Cancelled&) { is_cancelled = true; }
};
class Order : public stela::AggregateRoot<OrderState, stela::EventSet<Placed, Cancelled>> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
  void place(std::string customer) { record(Placed{std::move(customer), 4200, 0.5}); }
  void cancel() {
    if (!state().is_cancelled) record(Cancelled{});
  }
};

/// No customer has two open orders.
class OpenOrders {
 public:
  static constexpr stela::ProjectorType projector_type{"open_orders", 1};
  using Events = stela::EventSet<Placed, Cancelled>;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {open_orders} (id TEXT PRIMARY KEY, customer TEXT NOT NULL UNIQUE, cents "
        "INTEGER NOT NULL, discount REAL) STRICT");
  }
  void project(stela::ReadModel& model, const stela::Recorded<Placed>& e) {
    model.execute("INSERT INTO {open_orders} VALUES (?1, ?2, ?3, ?4)", e.stream().key(),
                  e->customer, e->cents, e->discount);
  }
  void project(stela::ReadModel& model, const stela::Recorded<Cancelled>& e) {
    model.execute("DELETE FROM {open_orders} WHERE id = ?1", e.stream().key());
  }
};

/// Nobody else has a second one either.
class Twins {
 public:
  static constexpr stela::ReactionType reaction_type{"twins"};
  using Events = stela::EventSet<Placed>;

  void react(stela::UnitOfWork& unit, const stela::Recorded<Placed>& e) {
    const auto id = stela::Id<Order>::from(std::string{e.stream().key()} + "-twin");
    if (Order* const known = unit.find(id)) known->cancel();
  }
};

std::int64_t open_orders(stela::Store& store) {
  stela::ModelReader reader{store};
  std::int64_t cents = 0;
  for (const stela::Row row : reader.query("SELECT * FROM open_orders WHERE cents > ?1", 1000)) {
    cents += row.get<std::int64_t>("cents");
    if (row.get<std::string>("customer").empty()) return 0;
  }
  return cents;
}

void relay(stela::Outbox& outbox, stela::Publisher& broker, const std::stop_token& stop) {
  stela::Relay relay{outbox, broker, {.batch_size = 500}};
  relay.on_tick([](const stela::RelayTick& tick) {
    if (tick.parked > 0) throw std::runtime_error{to_string(tick.broker)};
  });
  if (!stop.stop_requested()) relay.run_once();
  relay.run(stop);
}

std::int64_t operate(stela::Store& store) {
  stela::OutboxOperations operations{store};
  operations.on_progress([](const stela::Progress&) {});
  std::int64_t found = operations.reconcile().missing;
  for (const stela::PartitionStatus& partition : operations.status().partitions) {
    if (partition.flight_age) found += partition.flight_age->count();
  }
  for (const auto& projector : stela::ProjectionOperations{store}.status())
    found += projector.parked;
  return found;
}

void kit() {
  using namespace stela::testing;
  ProjectorScenario{OpenOrders{}}
      .given("order-1", Placed{"ada", 4200, {}})
      .given("order-2", Placed{"bob", 100, 0.25}, Cancelled{})
      .then("SELECT id, customer, cents FROM open_orders", {"1 | ada | 4200"})
      .rebuild();
  ProjectorScenario{OpenOrders{}}
      .given("order-1", Placed{"ada", 4200, {}})
      .refuses<stela::UniquenessViolated>("open_orders", "order-2", Placed{"ada", 1, {}});
  ReactionScenario{Twins{}}
      .given("order-1-twin", Placed{"eve", 1, {}})
      .when("order-1", Placed{"eve", 1, {}})
      .then(on("order-1-twin", Cancelled{}));
}

int main() {
  auto store = stela::sqlite::open("shop.db");
  stela::Outbox outbox{store};
  stela::Projections projections{store};
  projections.add_inline(OpenOrders{});
  projections.add_reaction(Twins{});
  std::jthread projecting{
      [&](const std::stop_token& stop) { stela::Runner{projections}.run(stop); }};
  stela::EventBus bus{store, {}, stela::EventBus::Feed::deliver};
  stela::BusPublisher broker{bus};
  std::jthread publishing{[&](const std::stop_token& stop) { relay(outbox, broker, stop); }};
  stela::Repository<Order> orders{store};
  Order order{stela::Id<Order>::generate()};
  order.place("ann");
  orders.save(order);
  kit();
  return open_orders(store) + operate(store) == 4200 ? 0 : 1;
}
