// Asks a store, and its broker, for what is judged.
#pragma once

#include "diagnosis/diagnose.hpp"
#include "store_session.hpp"

#include <stela/framework/error.hpp>

#include <chrono>
#include <optional>

namespace stela::tool {

/// Until when a part of the database is asked for; unset: for ever.
using AskedUntil = std::optional<std::chrono::steady_clock::time_point>;

/// Adds what the database has of what follows it, and of what operators know. What can't be asked
/// is noted, and takes nothing from the rest.
void ask_followers(Store& store, Facts& facts, AskedUntil until = {});

/// What helps against an error of a store that can't be reached, or takes no writes; empty if the
/// error says all.
std::string way_to_reach(ErrorCode code, bool is_on_server);
/// Of a store that can't be opened.
Facts facts_without_store(const Error& error, Invocation& call);

/// The broker is asked if the settings name one. A part of the database that doesn't answer is
/// noted; after `longest_asked` no further one is asked.
Facts ask(StoreSession& session, Invocation& call);

}  // namespace stela::tool
