// A program as users write it: compiled with all optimisations and warnings, as theirs may be. What
// an optimiser finds in our headers, it tells them.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_store.hpp>
#include <stela/testing/scenario.hpp>

#include <cereal/types/array.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/forward_list.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

enum class Colour { red, green };
constexpr auto enum_names(Colour) {
  return std::array{std::pair{Colour::red, "red"}, std::pair{Colour::green, "green"}};
}
enum class Number : short { one = 1 };
struct Line {
  std::string sku;
  int quantity = 0;
  std::optional<double> discount;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(sku), CEREAL_NVP(quantity), CEREAL_NVP(discount));
  }
};
struct Placed {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  stela::Uuid token;
  stela::Timestamp at;
  std::chrono::seconds patience{};
  Colour colour = Colour::red;
  Number number = Number::one;
  bool gift = false;
  float weight = 0;
  std::vector<Line> lines;
  std::vector<int> numbers;
  std::vector<bool> flags;
  std::map<std::string, int> counts;
  std::map<int, double> prices;
  std::map<int, std::optional<double>> perhaps;
  std::unordered_map<stela::Uuid, int> by_token;
  std::unordered_map<int, bool> by_number;
  std::multimap<int, int> many;
  std::multiset<double> doubles;
  std::set<int> set;
  std::set<Number> set_of_enums;
  std::unordered_set<int> unordered;
  std::unordered_multiset<float> unordered_many;
  std::list<std::optional<int>> list;
  std::deque<float> deque;
  std::forward_list<short> forward;
  std::variant<int, std::string, double> either;
  std::optional<int> perhaps_int;
  std::optional<stela::Uuid> perhaps_token;
  std::array<std::pair<int, bool>, 3> pairs;
  std::tuple<int, double> tuple;
  std::complex<double> complex;
  std::bitset<7> bits;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(token), CEREAL_NVP(at), CEREAL_NVP(patience),
            CEREAL_NVP(colour), CEREAL_NVP(number), CEREAL_NVP(gift), CEREAL_NVP(weight),
            CEREAL_NVP(lines), CEREAL_NVP(numbers), CEREAL_NVP(flags), CEREAL_NVP(counts),
            CEREAL_NVP(prices), CEREAL_NVP(perhaps), CEREAL_NVP(by_token), CEREAL_NVP(by_number),
            CEREAL_NVP(many), CEREAL_NVP(doubles), CEREAL_NVP(set), CEREAL_NVP(set_of_enums),
            CEREAL_NVP(unordered), CEREAL_NVP(unordered_many), CEREAL_NVP(list), CEREAL_NVP(deque),
            CEREAL_NVP(forward), CEREAL_NVP(either), CEREAL_NVP(perhaps_int),
            CEREAL_NVP(perhaps_token), CEREAL_NVP(pairs), CEREAL_NVP(tuple), CEREAL_NVP(complex),
            CEREAL_NVP(bits));
  }
};
struct Shipped {
  static constexpr stela::EventType event_type{"order.shipped", 1, stela::local};
};
struct State {
  int placed = 0;
  std::vector<Line> lines;
  void apply(const Placed& event) {
    ++placed;
    lines = event.lines;
  }
  void apply(const Shipped&) {}
};
class Order : public stela::AggregateRoot<State, stela::EventSet<Placed, Shipped>> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
  void place(std::string customer) {
    Placed event;
    event.customer = std::move(customer);
    record(std::move(event));
  }
  void ship() { record(Shipped{}); }
};

void by_options(stela::EventStore& store, const std::string& path) {
  auto store_of_file = stela::sqlite::open(
      path, {.durability = stela::sqlite::Durability::relaxed, .share_file = true});
  for (const auto& event :
       store.read_all({.since = stela::Timestamp{}, .streams = {"a-1"}, .event_types = {"x"}}))
    (void)event;
  for (const auto& event : store.read_stream(stela::StreamId::parse("a-1"), {.limit = 3}))
    (void)event;
  (void)stela::StoreOperations{store_of_file}.verify([](const stela::Problem&) {},
                                                     {.progress = [](const stela::Progress&) {}});
  stela::Repository<Order> orders{store};
  (void)orders.find(stela::Id<Order>::from("1"));
  (void)orders.load(stela::Id<Order>::from("1"), stela::as_of(stela::Timestamp{}));
  stela::retry([&] {
    auto order = orders.find(stela::Id<Order>::from("1"));
    if (!order) order.emplace(stela::Id<Order>::from("1"));
    order->place("b");
    orders.save(*order, {.append_id = "x"});
  });
  stela::UnitOfWork unit{store};
  unit.append(stela::StreamId::of("a", "b"), stela::ExpectedVersion::any(), Shipped{});
  unit.append(stela::StreamId::of("a", "b"), stela::ExpectedVersion::any(), Placed{});
  unit.add(Order{stela::Id<Order>::generate()}).ship();
  unit.commit({.append_id = "y"});
}
void kit() {
  stela::testing::ManualClock clock;
  stela::testing::MemoryStore memory{{.clock = &clock}};
  by_options(memory, "x.db");
  stela::testing::given<Order>(Shipped{}).when([](Order& order) { order.ship(); }).then(Shipped{});
  stela::testing::given<Order>()
      .when([] {
        Order o{stela::Id<Order>::from("1")};
        o.place("x");
        return o;
      })
      .throws<std::domain_error>("x");
}
int main() {
  auto store = stela::sqlite::open_in_memory();
  stela::Repository<Order> orders{store};
  Order order{stela::Id<Order>::generate()};
  order.place("ann");
  orders.save(order);
  stela::UnitOfWork unit{store};
  Order& again = unit.load<Order>(stela::id_of(order));
  again.ship();
  unit.commit();
  return orders.load(stela::id_of(order)).state().placed == 1 ? 0 : 1;
}
