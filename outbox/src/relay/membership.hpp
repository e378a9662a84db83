// How partitions are shared among workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stela::relay {

/// How many of `partitions` the worker `me` should hold while `workers`, which include `me` in any
/// order, are alive. Shares differ by at most one. A joining worker raises no other share and a
/// leaving one lowers none, so only its own share moves.
inline std::size_t share_of(std::string_view me, std::vector<std::string> workers,
                            std::size_t partitions) {
  std::sort(workers.begin(), workers.end());
  const auto rank = static_cast<std::size_t>(std::lower_bound(workers.begin(), workers.end(), me) -
                                             workers.begin());
  const std::size_t count = std::max<std::size_t>(workers.size(), 1);
  return partitions / count + (rank < partitions % count ? 1 : 0);
}

}  // namespace stela::relay
