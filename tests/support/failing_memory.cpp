#include "support/failing_memory.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>

namespace {

using stela::test::Memory;
using stela::test::Shortage;

thread_local std::optional<Memory> armed;
thread_local int until_failure = 0;
thread_local Shortage short_of = Shortage::of_one;

bool is_struck(Memory memory) noexcept {
  if (armed != memory) return false;
  if (until_failure == 0) return short_of == Shortage::of_all_from_there;
  return --until_failure == 0;
}

sqlite3_mem_methods platform;

void* allocate(int size) {
  return is_struck(Memory::sqlites) ? nullptr : platform.xMalloc(size);
}
void* reallocate(void* memory, int size) {
  return is_struck(Memory::sqlites) ? nullptr : platform.xRealloc(memory, size);
}

/// Runs before SQLite is used.
[[maybe_unused]] const bool is_installed = [] {
  bool done = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &platform) == SQLITE_OK;
  sqlite3_mem_methods methods = platform;
  methods.xMalloc = allocate;
  methods.xRealloc = reallocate;
  done = done && sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK;
  // Disables lookaside memory, so that small allocations can fail too.
  done = done && sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK;
  if (!done) std::abort();
  return done;
}();

}  // namespace

void* operator new(std::size_t size) {
  if (is_struck(Memory::ours)) throw std::bad_alloc{};
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

FailNthAllocation::FailNthAllocation(int nth, Memory memory, Shortage shortage) noexcept {
  until_failure = nth;
  short_of = shortage;
  armed = memory;
}

FailNthAllocation::~FailNthAllocation() {
  armed.reset();
}

int FailNthAllocation::left() noexcept {
  return until_failure;
}

}  // namespace stela::test
