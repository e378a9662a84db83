// Keeps events out that are sealed with a key that was destroyed.
#pragma once

#include "database/connection.hpp"

#include <stela/framework/event_store.hpp>

namespace stela {

/// Call it in the append's transaction, when nobody else can forget a key. SubjectForgotten if an
/// event is sealed with one that is; otherwise the newest of the keys is noted.
void check_keys(database::Connection& connection, const AppendRequest& request);

}  // namespace stela
