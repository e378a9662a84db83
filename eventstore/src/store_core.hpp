// The engine's part of a store.
#pragma once

#include "database/core.hpp"

namespace stela {

/// A store's database is always its core.
inline Store::Core& store_core(const Store& store) noexcept {
  return static_cast<Store::Core&>(store.database());
}

}  // namespace stela
