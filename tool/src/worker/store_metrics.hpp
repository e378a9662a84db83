// The metrics of a store's database for Prometheus.
#pragma once

#include "description/metric_writer.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/outbox/messages.hpp>

#include <optional>

namespace stela::tool {

/// Empty if the database has no outbox.
std::optional<OutboxStatus> outbox_status_of(Store& store);

/// The lag of a store's outbox and projectors, and their backlog. An error of the database becomes
/// `stela_store_up` 0.
void write_store(MetricWriter& out, Store& store);

}  // namespace stela::tool
