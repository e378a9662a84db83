// How whoever drives projectors calls itself.
#pragma once

#include <string>

namespace stela::projections {

/// Host, process and a random part.
std::string make_worker_name();

}  // namespace stela::projections
