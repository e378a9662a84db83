// The small domain that is measured, and databases full of it.
#pragma once

#include "measure.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::bench {

struct LineAdded {
  static constexpr EventType event_type{"basket.line_added", 1, should_publish};
  std::string customer;
  std::string product;
  std::int64_t quantity = 0;
  std::int64_t unit_cents = 0;
  std::string currency;
  bool gift = false;
  std::string note;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(product), CEREAL_NVP(quantity), CEREAL_NVP(unit_cents),
            CEREAL_NVP(currency), CEREAL_NVP(gift), CEREAL_NVP(note));
  }
};

struct LineDropped {
  static constexpr EventType event_type{"basket.line_dropped", 1, should_publish};
  std::string customer;
  std::string product;
  std::int64_t quantity = 0;
  std::int64_t refund_cents = 0;
  std::string currency;
  std::string reason;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(product), CEREAL_NVP(quantity),
            CEREAL_NVP(refund_cents), CEREAL_NVP(currency), CEREAL_NVP(reason));
  }
};

using BasketEvents = EventSet<LineAdded, LineDropped>;

struct BasketState {
  std::int64_t quantity = 0;
  std::int64_t cents = 0;
  std::int64_t gifts = 0;

  void apply(const LineAdded& e) {
    quantity += e.quantity;
    cents += e.quantity * e.unit_cents;
    if (e.gift) ++gifts;
  }
  void apply(const LineDropped& e) {
    quantity -= e.quantity;
    cents -= e.refund_cents;
  }

  friend bool operator==(const BasketState&, const BasketState&) = default;
};

class Basket : public AggregateRoot<BasketState, BasketEvents> {
 public:
  static constexpr std::string_view category = "basket";
  using AggregateRoot::AggregateRoot;

  void add(const LineAdded& line) { record(line); }
  void drop(const LineDropped& line) { record(line); }
};

/// Events to pick from, about 200 bytes each as JSON; every fourth drops a line.
class Samples {
 public:
  explicit Samples(Codec codec);

  std::size_t size() const noexcept { return encoded_.size(); }
  /// Sample `i`, as an append wants it.
  const NewEvent& encoded(std::size_t i) const noexcept { return events_[i]; }
  /// `count` of them, from the `i`th on as far as there are so many in a row.
  std::span<const NewEvent> some(std::size_t i, std::size_t count) const noexcept {
    return std::span{events_}.subspan(i % (size() - count + 1), count);
  }
  /// Sample `i`, recorded on a basket.
  void record(std::size_t i, Basket& basket) const;

  static bool drops(std::size_t i) noexcept { return i % 4 == 3; }

 private:
  std::vector<LineAdded> added_;
  std::vector<LineDropped> dropped_;
  std::vector<std::string> encoded_;
  std::vector<NewEvent> events_;
};

/// What a request sets: a correlation, an actor, a trace and a header. About 100 bytes of metadata.
Context sample_context();

Id<Basket> basket_id(std::size_t number);

struct ShopOptions {
  Codec codec = Codec::json;
  sqlite::Durability durability = sqlite::Durability::relaxed;
  /// Streams, and events in each of them, dealt out one by one over all of the streams (as life
  /// does) or stream by stream.
  std::size_t streams = 10'000;
  std::size_t events_each = 2;
  bool interleaved = true;
  Fence fence = Fence::stream;
  /// Whether there is an outbox at all.
  bool outbox = true;
  int partitions = 1;
  /// Else all of it waits to be published.
  bool published = true;
};

/// Makes a database of baskets at `path`; nothing is left in the log.
void make_shop(const std::string& path, const ShopOptions& options);

}  // namespace stela::bench
