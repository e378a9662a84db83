// The domain of the old databases. Its events and their layouts are on disk: they change only as an
// application's would, by new versions that are read beside the old ones.
#pragma once

#include <stela/framework.hpp>
#include <stela/projections.hpp>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace stela::test::old {

/// As it was before there were currencies, and under its former name.
struct OrderPlacedV1 {
  static constexpr EventType event_type{"order.entered", 1, should_publish};
  std::string customer;
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(cents));
  }
};
struct OrderPlaced {
  static constexpr EventType event_type{"order.placed", 2, should_publish};
  static constexpr auto former_names = names("order.entered");
  using Supersedes = OrderPlacedV1;
  static OrderPlaced upcast(OrderPlacedV1 old) {
    return {std::move(old.customer), old.cents, "EUR"};
  }
  std::string customer;
  std::int64_t cents = 0;
  std::string currency;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(cents), CEREAL_NVP(currency));
  }
};
struct OrderNoted {
  static constexpr EventType event_type{"order.noted", 1, local};
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};
struct OrderShipped {
  static constexpr EventType event_type{"order.shipped", 1, should_publish};
  std::string carrier;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(carrier));
  }
};
using OrderEvents = EventSet<OrderPlaced, OrderNoted, OrderShipped>;

struct OrderState {
  std::string customer;
  std::int64_t cents = 0;
  std::string currency;
  std::int64_t notes = 0;
  std::string carrier;

  void apply(const OrderPlaced& e) {
    customer = e.customer;
    cents = e.cents;
    currency = e.currency;
  }
  void apply(const OrderNoted&) { ++notes; }
  void apply(const OrderShipped& e) { carrier = e.carrier; }
};
class Order : public AggregateRoot<OrderState, OrderEvents> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
  void place(std::string customer, std::int64_t cents) {
    record(OrderPlaced{std::move(customer), cents, "CHF"});
  }
  void note(std::string text) { record(OrderNoted{std::move(text)}); }
  void ship(std::string carrier) { record(OrderShipped{std::move(carrier)}); }
};

/// What wrote orders before.
struct EnteredState {
  void apply(const OrderPlacedV1&) {}
};
class EnteredOrder : public AggregateRoot<EnteredState, EventSet<OrderPlacedV1>> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
  void enter(std::string customer, std::int64_t cents) {
    record(OrderPlacedV1{std::move(customer), cents});
  }
};

struct StockMoved {
  static constexpr EventType event_type{"stock.moved", 1, local};
  std::int64_t by = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(by));
  }
};
struct StockState {
  static constexpr int snapshot_version = 1;
  std::int64_t left = 0;
  /// How many events this was made from, since the snapshot.
  std::int64_t applied = 0;

  void apply(const StockMoved& e) {
    left += e.by;
    ++applied;
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(left));
  }
};
/// With a snapshot every four events.
class Stock : public AggregateRoot<StockState, EventSet<StockMoved>> {
 public:
  static constexpr std::string_view category = "stock";
  static constexpr auto snapshot_policy = SnapshotPolicy::every(4);
  using AggregateRoot::AggregateRoot;
  void move(std::int64_t by) { record(StockMoved{by}); }
};

/// Called before each event that a projector or a reaction handles; empty: nothing happens.
using Hook = std::function<void(const StoredEvent&)>;

/// A row for each order, in a table of the projector's name.
template <class Name, int version = 1>
class Listing {
 public:
  static constexpr ProjectorType projector_type{Name::text, version};
  using Events = OrderEvents;

  explicit Listing(Hook hook = {}) : hook_{std::move(hook)} {}

  void create(ReadModel& model) {
    model.execute("CREATE TABLE " + table +
                  " (id TEXT PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL, notes "
                  "INTEGER NOT NULL, carrier TEXT) STRICT");
  }
  void project(ReadModel& model, const Recorded<OrderPlaced>& e) {
    if (hook_) hook_(e.record());
    model.execute("INSERT INTO " + table + " VALUES (?1, ?2, ?3, 0, NULL)", e.stream().key(),
                  e->customer, e->cents);
  }
  void project(ReadModel& model, const Recorded<OrderNoted>& e) {
    if (hook_) hook_(e.record());
    model.execute("UPDATE " + table + " SET notes = notes + 1 WHERE id = ?1", e.stream().key());
  }
  void project(ReadModel& model, const Recorded<OrderShipped>& e) {
    if (hook_) hook_(e.record());
    model.execute("UPDATE " + table + " SET carrier = ?2 WHERE id = ?1", e.stream().key(),
                  e->carrier);
  }

 private:
  inline static const std::string table = "{" + std::string{Name::text} + "}";
  Hook hook_;
};

struct Live {
  static constexpr std::string_view text = "live";
};
struct Inline {
  static constexpr std::string_view text = "within";
};
struct Stopped {
  static constexpr std::string_view text = "stopped";
};
struct Killed {
  static constexpr std::string_view text = "killed";
};
struct Halted {
  static constexpr std::string_view text = "halted";
};
struct Parking {
  static constexpr std::string_view text = "parking";
};

/// Takes an order's goods from the shelf.
class Reserve {
 public:
  static constexpr ReactionType reaction_type{"reserve"};
  using Events = EventSet<OrderPlaced>;

  explicit Reserve(Hook hook = {}) : hook_{std::move(hook)} {}
  void react(UnitOfWork& unit, const Recorded<OrderPlaced>& e) {
    if (hook_) hook_(e.record());
    const auto id = Id<Stock>::from("shelf");
    Stock* const known = unit.find(id);
    (known != nullptr ? *known : unit.add(Stock{id})).move(-1);
  }

 private:
  Hook hook_;
};

}  // namespace stela::test::old
