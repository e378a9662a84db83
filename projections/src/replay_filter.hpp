// A replay's filter in its stored form, and as SQL parameters.
#pragma once

#include <stela/projections/replayer.hpp>

#include <cstdint>
#include <string>

namespace stela::projections {

/// Equal filters have the same text, which identifies a replay; empty for an empty filter.
std::string describe(const ReplayFilter& filter);

/// Lists as JSON arrays; empty if they don't filter.
struct FilterValues {
  explicit FilterValues(const ReplayFilter& filter);

  std::string streams;
  std::string categories;
  std::string types;
  Timestamp since;
  Timestamp until;
};

}  // namespace stela::projections
