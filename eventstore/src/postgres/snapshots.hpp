// Snapshots: the newest of each stream.
#pragma once

#include "postgres/reading.hpp"

#include <stela/framework/event_store.hpp>

#include <optional>

namespace stela::postgres {

/// A snapshot that doesn't match its checksum is logged and ignored.
std::optional<StoredSnapshot> find_snapshot(Reading& reading, const Conventions& conventions,
                                            const StreamId& stream, StreamVersion to,
                                            GlobalSequence up_to);
/// The write may be lost in the server's next crash.
void save_snapshot(Connection& connection, const StreamId& stream, const StoredSnapshot& snapshot,
                   Timestamp now);
void drop_snapshot(Connection& connection, const StreamId& stream);

}  // namespace stela::postgres
