// What the database of a store says for Prometheus.
#pragma once

#include "description/metric_writer.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/outbox/messages.hpp>

#include <optional>

namespace stela::tool {

/// Nothing if the database has no outbox.
std::optional<OutboxStatus> outbox_status_of(Store& store);

/// The lag of a store's outbox and projectors, and what waits in them. What the database throws is
/// told as `stela_store_up` 0.
void write_store(MetricWriter& out, Store& store);

}  // namespace stela::tool
