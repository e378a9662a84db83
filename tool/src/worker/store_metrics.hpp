// What the database of a store says for Prometheus.
#pragma once

#include "description/metric_writer.hpp"

#include <stela/eventstore/store.hpp>

namespace stela::tool {

/// The lag of a store's outbox and projectors, and what waits in them. What the database throws is
/// told as `stela_store_up` 0.
void write_store(MetricWriter& out, Store& store);

}  // namespace stela::tool
