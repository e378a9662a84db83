#include "support/failing_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local bool armed = false;
thread_local int until_failure = 0;

}  // namespace

void* operator new(std::size_t size) {
  if (armed && until_failure > 0 && --until_failure == 0) throw std::bad_alloc{};
  if (void* const memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace stela::test {

FailNthAllocation::FailNthAllocation(int nth) noexcept {
  until_failure = nth;
  armed = true;
}

FailNthAllocation::~FailNthAllocation() {
  armed = false;
}

int FailNthAllocation::left() noexcept {
  return until_failure;
}

}  // namespace stela::test
