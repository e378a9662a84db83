// A read model: what each order costs.
#pragma once

#include "order.hpp"

#include <stela/projections.hpp>

namespace orders {

class OrderTotals {
 public:
  static constexpr stela::ProjectorType projector_type{"order_totals", 1};
  using Events = stela::EventSet<OrderPlaced>;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {order_totals} (order_id TEXT PRIMARY KEY, customer TEXT, total INTEGER)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<OrderPlaced>& placed) {
    model.execute("INSERT INTO {order_totals} VALUES (?1, ?2, ?3)", placed.stream().key(),
                  placed->customer, placed->total_cents);
  }
};

}  // namespace orders
