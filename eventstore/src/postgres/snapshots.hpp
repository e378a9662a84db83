// Snapshots: the newest of each stream that has one.
#pragma once

#include "postgres/readers.hpp"

#include <stela/framework/event_store.hpp>

#include <optional>

namespace stela::postgres {

/// One that doesn't match its checksum is logged, and none.
std::optional<StoredSnapshot> find_snapshot(Reading& reading, const Conventions& conventions,
                                            const StreamId& stream, StreamVersion to,
                                            GlobalSequence up_to);
/// Both may be lost with the server's next crash.
void save_snapshot(Connection& connection, const StreamId& stream, const StoredSnapshot& snapshot,
                   Timestamp now);
void drop_snapshot(Connection& connection, const StreamId& stream);

}  // namespace stela::postgres
