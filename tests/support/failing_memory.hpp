// Allocations that fail when a test wants it. Whoever links this replaces the global operator new,
// and the memory of SQLite.
#pragma once

#include <cstdint>

namespace stela::test {

/// Whose allocations: those of C++, or those that SQLite makes for itself.
enum class Memory : std::uint8_t { ours, sqlites };

enum class Shortage : std::uint8_t { of_one, of_all_from_there };

/// The nth allocation of this thread from now on fails, and no other unless all from there do: it
/// throws std::bad_alloc, or gives SQLite nothing.
/// Threads: one at a time; others aren't touched.
class FailNthAllocation {
 public:
  explicit FailNthAllocation(int nth, Memory memory = Memory::ours,
                             Shortage shortage = Shortage::of_one) noexcept;
  ~FailNthAllocation();
  FailNthAllocation(const FailNthAllocation&) = delete;
  FailNthAllocation& operator=(const FailNthAllocation&) = delete;

  /// So many allocations were left when it ended; 0 if it has struck.
  static int left() noexcept;
};

}  // namespace stela::test
