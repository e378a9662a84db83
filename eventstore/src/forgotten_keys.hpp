// Keeps events out that are sealed with a key that was destroyed.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/event_store.hpp>

namespace stela {

/// Call it in the append's transaction, when nobody else can forget a key. SubjectForgotten if an
/// event is sealed with one that is; otherwise the newest of the keys is noted.
void check_keys(database::Connection& connection, const AppendRequest& request);

/// Compares a store that is being opened with its keys: KeysBehind if they are of an older key
/// store, or of another store's. Unless it is only read, completes what was interrupted, and what
/// a backup has undone.
void settle_keys(Store& store, bool read_only);

}  // namespace stela
