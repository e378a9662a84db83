// The parts of doctor that examine an engine.
#pragma once

#include "commands/examination.hpp"
#include "database_place.hpp"
#include "store_session.hpp"

#include <stela/eventstore/store.hpp>

namespace stela::tool {

/// Examines the SQLite library.
void look_at_sqlite(Examination& examination);
/// Examines the file of a SQLite store, and its surroundings.
void look_at_file(Examination& examination, Store& store);
/// Examines the server at `place`. False if nothing can be read or written there.
bool look_at_server(Examination& examination, const DatabasePlace& place, Store& store);
/// Examines the keys of personal fields, if given, and field names that look personal.
void look_at_privacy(Examination& examination, Invocation& call, StoreSession& session);

}  // namespace stela::tool
