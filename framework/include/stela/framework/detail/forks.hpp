// Detects forked child processes.
#pragma once

#include <stela/framework/export.hpp>

namespace stela::detail {

/// The number of forks between this process and the first one, counted from the first call. It
/// avoids a system call for the process id each time. Threads: any number at once.
STELA_FRAMEWORK_EXPORT int count_forks() noexcept;

}  // namespace stela::detail
