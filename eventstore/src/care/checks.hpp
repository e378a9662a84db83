// The event store's checks that are the same on every engine.
#pragma once

#include "care/inspection.hpp"

#include <stela/framework/stored_event.hpp>

#include <cstdint>

namespace stela::care {

/// The number of rows up to the last one at the time of counting, and that row.
struct Counted {
  std::int64_t count;
  std::int64_t through;
};

Counted check_streams(Inspection& inspection);
Counted check_kinds(Inspection& inspection);
/// `look` sees each undamaged event.
void check_events(Inspection& inspection,
                  FunctionRef<void(database::Connection&, const StoredEvent&)> look);
void check_tags(Inspection& inspection);
void check_append_ids(Inspection& inspection);
void check_append_groups(Inspection& inspection);
void check_snapshots(Inspection& inspection);

}  // namespace stela::care
