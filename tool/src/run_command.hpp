// Runs one command on behalf of another program.
#pragma once

#include "cli/arguments.hpp"
#include "cli/invocation.hpp"
#include "cli/output.hpp"

#include <stela/tool/app.hpp>

#include <span>

namespace stela::tool {

/// Returns the exit code. Reports exceptions as an error of `out`.
int run_command(const App& app, std::span<const Command> commands, const Command& command,
                const Arguments& arguments, Output& out, Invocation::Access access,
                const Principal* principal = nullptr);

}  // namespace stela::tool
