// How much memory something takes, told by a process that does nothing else.
#pragma once

#include <string>

namespace stela::bench {

/// A line of /proc/self/status, in KiB: VmRSS is what the process has now, VmHWM its peak.
double memory_kib(const std::string& field);

/// Runs this program with these arguments; the number that it prints.
double in_own_process(const std::string& arguments);

}  // namespace stela::bench
