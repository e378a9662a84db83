// Asks a store, and its broker, for what is judged.
#pragma once

#include "diagnosis/diagnose.hpp"
#include "store_session.hpp"

namespace stela::tool {

/// Adds what the database has of what follows it, and of what operators know.
void ask_followers(Store& store, Facts& facts);

/// The broker is asked if the settings name one.
Facts ask(StoreSession& session, Invocation& call);

}  // namespace stela::tool
