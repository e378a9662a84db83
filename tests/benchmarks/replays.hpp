// The same replay by Stela and by a bare loop: quantities and money by product, in memory.
#pragma once

#include "decode.hpp"
#include "measure.hpp"
#include "shop.hpp"

#include <stela/projections.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace stela::bench {

struct ProductTotal {
  std::int64_t quantity = 0;
  std::int64_t cents = 0;
};
using ProductTotals = std::unordered_map<std::string, ProductTotal>;

/// Sums by product, in memory.
class InMemory {
 public:
  static constexpr ProjectorType projector_type{"in_memory", 1};
  using Events = BasketEvents;
  explicit InMemory(std::shared_ptr<ProductTotals> totals) : totals_{std::move(totals)} {}

  void create(ReadModel&) {}
  void project(ReadModel&, const Recorded<LineAdded>& e) {
    ProductTotal& total = (*totals_)[e->product];
    total.quantity += e->quantity;
    total.cents += e->quantity * e->unit_cents;
  }
  void project(ReadModel&, const Recorded<LineDropped>& e) {
    ProductTotal& total = (*totals_)[e->product];
    total.quantity -= e->quantity;
    total.cents -= e->refund_cents;
  }

 private:
  std::shared_ptr<ProductTotals> totals_;
};

/// Replays everything anew with each operation.
class Replay final : public Subject {
 public:
  Replay(Projections& projections, std::string projector, bool decode_ahead = false,
         ReplayFilter filter = {.to = GlobalSequence{1'000'000'000}})
      : replayer_{projections},
        projector_{std::move(projector)},
        decode_ahead_{decode_ahead},
        filter_{std::move(filter)} {}

  void run() override {
    (void)replayer_.run({.projectors = {projector_},
                         .filter = filter_,
                         .restart = true,
                         .decode_ahead = decode_ahead_});
  }

 private:
  Replayer replayer_;
  std::string projector_;
  bool decode_ahead_;
  ReplayFilter filter_;
};

/// Decodes and sums as somebody would who writes it out.
template <class Reader, class Decode>
class BareMap final : public Subject {
 public:
  BareMap(const std::string& path, Decode decode) : reader_{path}, decode_{std::move(decode)} {}

  void run() override {
    totals.clear();
    reader_.read_all([&](std::int64_t kind, std::string_view payload) {
      if (kind == reader_.added_kind()) {
        LineAdded e;
        decode_(payload, e);
        ProductTotal& total = totals[e.product];
        total.quantity += e.quantity;
        total.cents += e.quantity * e.unit_cents;
      } else {
        LineDropped e;
        decode_(payload, e);
        ProductTotal& total = totals[e.product];
        total.quantity -= e.quantity;
        total.cents -= e.refund_cents;
      }
    });
  }

  ProductTotals totals;

 private:
  Reader reader_;
  Decode decode_;
};

/// Decodes portable binary, for a BareMap.
inline auto by_hand() {
  return [](std::string_view payload, auto& e) { HandDecoder{payload}.into(e); };
}

}  // namespace stela::bench
