// The checks of the event store that are the same on every engine.
#pragma once

#include "care/inspection.hpp"

#include <stela/framework/stored_event.hpp>

#include <cstdint>

namespace stela::care {

/// Rows by their numbers: how many there are up to one that was the last when they were counted.
struct Counted {
  std::int64_t count;
  std::int64_t through;
};

Counted check_streams(Inspection& inspection);
Counted check_kinds(Inspection& inspection);
/// `look` sees each event that is as it was stored.
void check_events(Inspection& inspection,
                  FunctionRef<void(database::Connection&, const StoredEvent&)> look);
void check_tags(Inspection& inspection);
void check_append_ids(Inspection& inspection);
void check_append_groups(Inspection& inspection);
void check_snapshots(Inspection& inspection);

}  // namespace stela::care
