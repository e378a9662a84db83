// Collects facts from a store and its broker.
#pragma once

#include "diagnosis/diagnose.hpp"
#include "store_session.hpp"

#include <stela/framework/error.hpp>

#include <chrono>
#include <optional>

namespace stela::tool {

/// The deadline for querying a part of the database. Unset: none.
using AskedUntil = std::optional<std::chrono::steady_clock::time_point>;

/// Adds the followers of the log and the operators' acknowledgements. Parts that can't be queried
/// are noted, and don't affect the others.
void ask_followers(Store& store, Facts& facts, AskedUntil until = {});

/// The remedy for a store that can't be reached or takes no writes. Empty if the error says enough.
std::string way_to_reach(ErrorCode code, bool is_on_server);
/// For a store that can't be opened.
Facts facts_without_store(const Error& error, Invocation& call);

/// Queries the broker if one is configured. Parts of the database that don't answer are noted.
/// After `longest_asked` no further part is queried.
Facts ask(StoreSession& session, Invocation& call);

}  // namespace stela::tool
