// What a handler of the user's failed with, as it is noted.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace stela::projections {

/// Thrown to roll back a transaction whose outcome is known.
struct RollBack {};

inline std::string text_of(const std::exception_ptr& error) {
  constexpr std::size_t max_size = 2000;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return std::string{e.what()}.substr(0, max_size);
  } catch (...) {
    return "something was thrown that isn't a std::exception";
  }
}

}  // namespace stela::projections
