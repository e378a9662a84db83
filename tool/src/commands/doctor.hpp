// The parts of doctor that look at an engine.
#pragma once

#include "commands/examination.hpp"
#include "database_place.hpp"
#include "store_session.hpp"

#include <stela/eventstore/store.hpp>

namespace stela::tool {

/// At the library.
void look_at_sqlite(Examination& examination);
/// At the file of a store on SQLite, and at what is around it.
void look_at_file(Examination& examination, Store& store);
/// At the server of a store on PostgreSQL, which is at `place`. False if nothing can be read or
/// written there.
bool look_at_server(Examination& examination, const DatabasePlace& place, Store& store);
/// At the keys of personal fields, if some are named, and at names that look personal.
void look_at_privacy(Examination& examination, Invocation& call, StoreSession& session);

}  // namespace stela::tool
