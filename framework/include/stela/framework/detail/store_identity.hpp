// The identity of the store that an aggregate or a position belongs to.
#pragma once

#include <stela/framework/export.hpp>
#include <stela/framework/uuid.hpp>

#include <memory>
#include <string>

namespace stela {

/// The identity that a store shares with its transactions, aggregates and positions.
struct StoreIdentity {
  /// The id of the database: the same for every handle and in every process.
  Uuid id = {};
  /// Where this handle found the store. For messages.
  std::string place = {};
};

namespace detail {

using SharedIdentity = std::shared_ptr<const StoreIdentity>;

/// False if either is unknown.
inline bool are_different_stores(const SharedIdentity& one, const SharedIdentity& other) noexcept {
  return one != other && one && other && one->id != other->id;
}

/// "'shop.db' and not to 'bank.db'", with their ids if the places are the same.
STELA_FRAMEWORK_EXPORT std::string name_both(const StoreIdentity& right, const StoreIdentity& wrong,
                                             const std::string& between);

}  // namespace detail
}  // namespace stela
