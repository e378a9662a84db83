// Asks a store, and its broker, for what is judged.
#pragma once

#include "diagnosis/diagnose.hpp"
#include "store_session.hpp"

namespace stela::tool {

/// The broker is asked if the settings name one.
Facts ask(StoreSession& session, Invocation& call);

}  // namespace stela::tool
