// Whether a process is a forked child.
#pragma once

#include <stela/framework/export.hpp>

namespace stela::detail {

/// How many forks lie between this process and the first one, since somebody first asked. Asking
/// for the process id instead would be a system call each time.
/// Threads: any number at once.
STELA_FRAMEWORK_EXPORT int count_forks() noexcept;

}  // namespace stela::detail
