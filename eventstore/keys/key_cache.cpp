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
  const auto found = by_subject_.find(subject);
  return found != by_subject_.end() ? found->second : nullptr;
}

std::optional<Key> KeyCache::find(const KeyId& id) const {
  const std::shared_lock lock{mutex_};
  const auto found = by_id_.find(id);
  return found != by_id_.end() ? std::optional{found->second} : std::nullopt;
}

std::uint64_t KeyCache::epoch() const {
  const std::shared_lock lock{mutex_};
  return epoch_;
}

void KeyCache::add(const KeyId& id, const Key& key, std::uint64_t epoch) {
  const std::lock_guard lock{mutex_};
  if (epoch != epoch_) return;
  if (by_id_.size() >= most_) drop(now_);
  by_id_.insert_or_assign(id, key);
  if (key != nullptr) by_subject_.insert_or_assign(key->subject, key);
}

void KeyCache::clear() {
  const std::lock_guard lock{mutex_};
  ++epoch_;
  drop(now_);
}

void KeyCache::drop(Time now) {
  by_id_.clear();
  by_subject_.clear();
  dropped_at_ = now;
}

void KeyCache::age(Time now) {
  const std::lock_guard lock{mutex_};
  now_ = now;
  if (now - dropped_at_ >= longest) drop(now);
}

}  // namespace stela::keys
