// Asks a store for what is judged.
#pragma once

#include "diagnosis/diagnose.hpp"
#include "store_session.hpp"

#include <string>

namespace stela::tool {

/// `program` is what the tool is called by.
Facts ask(StoreSession& session, const std::string& program);

}  // namespace stela::tool
