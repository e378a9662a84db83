// The `stela` command, for your own program.
#pragma once

#include <stela/tool/app.hpp>
#include <stela/tool/export.hpp>

namespace stela::tool {

/// Runs the command in the arguments and returns the exit code: 0 done, 1 failed, 2 wrong usage, 3
/// not found, 4 can't connect, 130 interrupted. Throws nothing. Call it from `main`, before other
/// threads are started: long operations handle SIGINT and SIGTERM. Threads: one at a time.
STELA_TOOL_EXPORT int run(int argc, const char* const* argv, const App& app = {});

}  // namespace stela::tool
