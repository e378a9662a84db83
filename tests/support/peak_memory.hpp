// The peak memory of an operation.
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace stela::test {

/// Whether a peak measures the operation: AddressSanitizer keeps freed memory in a quarantine of
/// hundreds of MiB.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool peaks_are_of_the_work = false;
#else
inline constexpr bool peaks_are_of_the_work = true;
#endif

/// The largest growth of the process during `work`, in MiB.
template <class Work>
std::int64_t peak_mib_of(Work&& work) {
  const auto status = [](const std::string& key) {
    std::ifstream file{"/proc/self/status"};
    std::string name;
    std::int64_t kib = 0;
    while (file >> name) {
      if (name == key && file >> kib) return kib / 1024;
      file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    throw std::runtime_error{"/proc/self/status has no " + key};
  };
  // Resets the high-water mark to the present use.
  std::ofstream reset{"/proc/self/clear_refs"};
  if (!(reset << "5" << std::flush)) throw std::runtime_error{"the peak can't be reset"};
  const std::int64_t before = status("VmRSS:");
  work();
  return status("VmHWM:") - before;
}

}  // namespace stela::test
