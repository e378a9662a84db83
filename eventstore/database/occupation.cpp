#include "database/occupation.hpp"

#include <utility>

namespace stela::database {

Occupation::Slot& Occupation::of_this_thread() noexcept {
  thread_local Slot slot;
  return slot;
}

std::string_view Occupation::Slot::exchange(std::string_view what) noexcept {
  const std::lock_guard lock{mutex_};
  return std::exchange(what_, what);
}

Occupation::Occupation(std::string_view what) noexcept : outer_{of_this_thread().exchange(what)} {}

Occupation::~Occupation() {
  of_this_thread().exchange(outer_);
}

}  // namespace stela::database
