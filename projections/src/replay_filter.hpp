// A replay's filter, as it is stored and as SQL takes it.
#pragma once

#include <stela/projections/replayer.hpp>

#include <cstdint>
#include <string>

namespace stela::projections {

/// The same text for the same filter, empty for an empty one: how a replay is known again.
std::string describe(const ReplayFilter& filter);

/// Lists as JSON arrays, empty if they don't filter.
struct FilterValues {
  explicit FilterValues(const ReplayFilter& filter);

  std::string streams;
  std::string categories;
  std::string types;
  Timestamp since;
  Timestamp until;
};

}  // namespace stela::projections
