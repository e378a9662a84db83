// The stock of one article: the available quantity, and the reservations by order.
#pragma once

#include <stela/framework.hpp>
#include <stela/framework/extern_templates.hpp>

#include <cereal/types/map.hpp>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace orders {

struct StockReceived {
  static constexpr stela::EventType event_type{"stock.received", 1, stela::local};
  std::int64_t quantity = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(quantity));
  }
};

struct StockReserved {
  static constexpr stela::EventType event_type{"stock.reserved", 1, stela::local};
  std::string order;
  std::int64_t quantity = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order), CEREAL_NVP(quantity));
  }
};

/// The order was cancelled, so its reservation is available to others again.
struct StockReleased {
  static constexpr stela::EventType event_type{"stock.released", 1, stela::local};
  std::string order;
  std::int64_t quantity = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order), CEREAL_NVP(quantity));
  }
};

/// The goods were shipped with the order.
struct StockTaken {
  static constexpr stela::EventType event_type{"stock.taken", 1, stela::local};
  std::string order;
  std::int64_t quantity = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order), CEREAL_NVP(quantity));
  }
};

using StockEvents = stela::EventSet<StockReceived, StockReserved, StockReleased, StockTaken>;

struct StockState {
  static constexpr int snapshot_version = 1;
  std::int64_t available = 0;
  /// The reserved quantity by order.
  std::map<std::string, std::int64_t> reserved;

  void apply(const StockReceived& received) { available += received.quantity; }
  void apply(const StockReserved& kept) {
    available -= kept.quantity;
    reserved[kept.order] = kept.quantity;
  }
  void apply(const StockReleased& released) {
    available += released.quantity;
    reserved.erase(released.order);
  }
  void apply(const StockTaken& taken) { reserved.erase(taken.order); }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(available), CEREAL_NVP(reserved));
  }
};

class Stock : public stela::AggregateRoot<StockState, StockEvents> {
 public:
  static constexpr std::string_view category = "stock";
  /// Streams of stock get long, so they are read from a snapshot on.
  static constexpr auto snapshot_policy = stela::SnapshotPolicy::every(50);
  using AggregateRoot::AggregateRoot;

  void receive(std::int64_t quantity) {
    if (quantity < 1) throw std::domain_error{"one piece or more is received"};
    record(StockReceived{quantity});
  }

  void reserve(std::string order, std::int64_t quantity) {
    if (state().reserved.contains(order)) throw std::domain_error{"that order has its stock"};
    if (quantity > state().available) {
      throw std::domain_error{"only " + std::to_string(state().available) + " pieces of '" +
                              std::string{stream().key()} + "' are available"};
    }
    record(StockReserved{std::move(order), quantity});
  }

  void release(std::string order) {
    const std::int64_t quantity = reserved_for(order);
    record(StockReleased{std::move(order), quantity});
  }

  void take(std::string order) {
    const std::int64_t quantity = reserved_for(order);
    record(StockTaken{std::move(order), quantity});
  }

 private:
  std::int64_t reserved_for(const std::string& order) const {
    const auto found = state().reserved.find(order);
    if (found == state().reserved.end()) {
      throw std::domain_error{"nothing is reserved for that order"};
    }
    return found->second;
  }
};

using StockId = stela::Id<Stock>;

}  // namespace orders

// Compiled in domain.cpp.
STELA_EXTERN_AGGREGATE(orders::Stock);
