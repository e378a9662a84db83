// How fast the machine is, apart from Stela: the scale for comparing runs.
#pragma once

#include <cstddef>
#include <filesystem>

namespace stela::bench {

/// Microseconds, p50, that a write of so many WAL frames (4,120 bytes each) and its fdatasync take,
/// over a file that is already that long.
double sync_p50_us(const std::filesystem::path& folder, std::size_t frames, int times);

}  // namespace stela::bench
