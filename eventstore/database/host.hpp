// How a process names itself to others.
#pragma once

#include <stela/eventstore/export.hpp>

#include <string>

namespace stela::host {

/// "unknown" if the host has no name.
STELA_EVENTSTORE_EXPORT std::string name();

/// The user and host of the process: "jane@shop".
STELA_EVENTSTORE_EXPORT std::string user();

/// Host, process and a random part.
STELA_EVENTSTORE_EXPORT std::string make_worker_name();

}  // namespace stela::host
