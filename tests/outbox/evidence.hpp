// What must hold between a store and a broker, whatever happened.
#pragma once

#include "outbox/file_broker.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace stela::test {

struct Evidence {
  /// The first things that are wrong, in words.
  std::vector<std::string> flaws = {};
  std::int64_t events = 0;
  /// Second copies under one id: allowed without a fence.
  std::int64_t duplicates = 0;
};

/// Compares, when everything is drained: the invariants of the outbox's tables (verify), and of
/// what stands at the broker: nothing lost, nothing that isn't ours, the bytes and ids as stored,
/// first copies in order, and with a fence nothing twice.
Evidence compare(Store& store, FileBroker& broker, Fence fence);

}  // namespace stela::test
