// Allocations that fail on demand. Linking this replaces the global operator new, and SQLite's
// memory.
#pragma once

#include <cstdint>

namespace stela::test {

/// Which allocations fail: those of C++, or those of SQLite itself.
enum class Memory : std::uint8_t { ours, sqlites };

enum class Shortage : std::uint8_t { of_one, of_all_from_there };

/// Makes the nth allocation of this thread from now on fail, and with `of_all_from_there` all later
/// ones too: it throws std::bad_alloc, or returns null to SQLite. Threads: one at a time; others
/// aren't affected.
class FailNthAllocation {
 public:
  explicit FailNthAllocation(int nth, Memory memory = Memory::ours,
                             Shortage shortage = Shortage::of_one) noexcept;
  ~FailNthAllocation();
  FailNthAllocation(const FailNthAllocation&) = delete;
  FailNthAllocation& operator=(const FailNthAllocation&) = delete;

  /// The number of allocations left when it ended; 0 if it fired.
  static int left() noexcept;
};

}  // namespace stela::test
