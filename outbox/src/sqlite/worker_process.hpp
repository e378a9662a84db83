// Where a worker runs, and whether it still does.
#pragma once

#include <stela/outbox/messages.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::outbox {

/// "unknown" if it has no name.
std::string host_name();

/// Of the process `pid` on `host`.
WorkerProcess find_process(std::string_view host, std::int64_t pid);

}  // namespace stela::outbox
