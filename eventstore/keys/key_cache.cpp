#include "key_cache.hpp"

#include <functional>
#include <mutex>
#include <utility>

namespace stela::keys {

std::size_t KeyCache::SubjectHash::operator()(const Subject& subject) const noexcept {
  const std::hash<std::string> hash;
  return hash(subject.name) * 31 + (subject.purpose.empty() ? 0 : hash(subject.purpose));
}

Key KeyCache::find(const Subject& subject) const {
  const std::shared_lock lock{mutex_};
  for (const Generation* generation : {&young_, &old_}) {
    const auto found = generation->by_subject.find(subject);
    if (found != generation->by_subject.end()) return found->second;
  }
  return nullptr;
}

std::optional<Key> KeyCache::find(const KeyId& id) const {
  const std::shared_lock lock{mutex_};
  for (const Generation* generation : {&young_, &old_}) {
    const auto found = generation->by_id.find(id);
    if (found != generation->by_id.end()) return found->second;
  }
  return std::nullopt;
}

std::uint64_t KeyCache::epoch() const {
  const std::shared_lock lock{mutex_};
  return epoch_;
}

void KeyCache::add(const KeyId& id, const Key& key, std::uint64_t epoch) {
  const std::lock_guard lock{mutex_};
  if (epoch != epoch_) return;
  if (young_.by_id.size() >= most_) turn(now_);
  young_.by_id.insert_or_assign(id, key);
  if (key != nullptr) young_.by_subject.insert_or_assign(key->subject, key);
}

void KeyCache::clear() {
  const std::lock_guard lock{mutex_};
  ++epoch_;
  young_ = {};
  old_ = {};
}

void KeyCache::turn(Time now) {
  old_ = std::exchange(young_, {});
  turned_at_ = now;
}

void KeyCache::age(Time now) {
  const std::lock_guard lock{mutex_};
  now_ = now;
  if (now - turned_at_ < half_life) return;
  if (now - turned_at_ >= 2 * half_life) young_ = {};
  turn(now);
}

}  // namespace stela::keys
