// Allocations that fail when a test wants it. Whoever links this replaces the global operator new.
#pragma once

namespace stela::test {

/// The nth allocation of this thread from now on throws std::bad_alloc, and no other.
/// Threads: one at a time; others aren't touched.
class FailNthAllocation {
 public:
  explicit FailNthAllocation(int nth) noexcept;
  ~FailNthAllocation();
  FailNthAllocation(const FailNthAllocation&) = delete;
  FailNthAllocation& operator=(const FailNthAllocation&) = delete;

  /// So many allocations were left when it ended; 0 if it has struck.
  static int left() noexcept;
};

}  // namespace stela::test
