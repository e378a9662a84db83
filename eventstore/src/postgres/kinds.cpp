#include "postgres/kinds.hpp"

#include <string>

namespace stela::postgres {

const EventKind* KindTable::find_known(const Key& key) const {
  const auto [begin, end] = kinds_.equal_range(key.number);
  for (auto it = begin; it != end; ++it) {
    if (key.is(*it->second)) return it->second.get();
  }
  return nullptr;
}

const EventKind& KindTable::find(const Key& key) {
  {
    const std::shared_lock lock{mutex_};
    if (const EventKind* const known = find_known(key)) return *known;
  }
  const std::unique_lock lock{mutex_};
  if (const EventKind* const known = find_known(key)) return *known;
  auto kind = std::make_unique<const EventKind>(
      EventKind{key.number, std::string{key.type}, key.version, key.publishes});
  return *kinds_.emplace(key.number, std::move(kind))->second;
}

}  // namespace stela::postgres
