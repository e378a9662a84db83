#include "worker/store_metrics.hpp"

#include "worker/health.hpp"

#include <stela/framework/error.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/timers.hpp>

#include <exception>
#include <optional>

namespace stela::tool {

std::optional<OutboxStatus> outbox_status_of(Store& store) {
  std::optional<OutboxOperations> outbox;
  try {
    outbox.emplace(store);
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return outbox->status();
}

namespace {

void look(MetricWriter& out, Store& store) {
  if (const auto status = outbox_status_of(store)) write_outbox(out, *status);
  write_projectors(out, ProjectionOperations{store}.status());
  write_processes(out, TimerOperations{store}.processes());
}

}  // namespace

void write_store(MetricWriter& out, Store& store) {
  bool is_up = false;
  try {
    look(out, store);
    is_up = true;
  } catch (const std::exception&) {
    // Reported below. The store's users log the error.
  }
  out.begin("stela_store_up", "gauge", "1 if the store's database answered.").value(is_up ? 1 : 0);
}

}  // namespace stela::tool
