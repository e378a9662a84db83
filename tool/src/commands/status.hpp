// `outbox status`, once or repeatedly.
#pragma once

#include "cli/command.hpp"
#include "cli/output.hpp"

#include <stela/outbox/messages.hpp>

#include <chrono>
#include <string>

namespace stela::tool {

class StoreSession;

Command status_command();

/// Shows the status every `interval` until a stop is requested: redrawn on a terminal, elsewhere a
/// line each time, with --json an object. Returns the exit code.
int watch_status(Invocation& call, std::chrono::milliseconds interval);

/// Prints the status as JSON, with the position and time that it is of.
void print_status(StoreSession& session, const OutboxStatus& status, Output& out);

/// "2026-11-23T10:00:00Z pending 3, in flight 0, …".
std::string to_line(const OutboxStatus& status);

}  // namespace stela::tool
