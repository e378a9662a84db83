// What operators did, as each module's operations record it.
#pragma once

#include <stela/framework/clock.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace stela {

struct OperatorAction {
  std::int64_t number = 0;
  Timestamp at = {};
  std::string who = {};
  std::string what = {};
  std::string detail = {};
};

struct ActionQuery {
  /// Only actions before this one: for the next page.
  std::optional<std::int64_t> before = {};
  int limit = 100;
};

}  // namespace stela
