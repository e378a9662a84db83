#include <stela/framework/error.hpp>
#include <stela/testing/memory_keys.hpp>

#include <algorithm>

namespace stela::testing {

std::shared_ptr<const SubjectKey> MemoryKeys::key_of(const Subject& subject) {
  const std::lock_guard lock{mutex_};
  for (const auto& [id, key] : keys_) {
    if (key != nullptr && key->subject == subject) return key;
  }
  if (std::find(forgotten_.begin(), forgotten_.end(), subject) != forgotten_.end()) {
    throw SubjectForgotten{"'" + subject.name + "' was forgotten"};
  }
  const KeyId id = KeyId::make();
  return keys_[id] =
             std::make_shared<const SubjectKey>(SubjectKey{id, subject, Secret::random(), ++last_});
}

std::shared_ptr<const SubjectKey> MemoryKeys::find(const KeyId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = keys_.find(id);
  if (found == keys_.end()) throw KeyMissing{"no key '" + id.to_string() + "' was made here"};
  return found->second;
}

std::vector<KeyInfo> MemoryKeys::keys_of(std::string_view subject) {
  const std::lock_guard lock{mutex_};
  std::vector<KeyInfo> found;
  for (const auto& [id, key] : keys_) {
    if (key != nullptr && key->subject.name == subject) {
      found.push_back({.id = id, .subject = key->subject, .number = key->number});
    }
  }
  std::sort(found.begin(), found.end(), [](const KeyInfo& a, const KeyInfo& b) {
    return a.subject.purpose < b.subject.purpose;
  });
  return found;
}

std::size_t MemoryKeys::destroy(std::span<const KeyId> ids) {
  const std::lock_guard lock{mutex_};
  std::size_t destroyed = 0;
  for (const KeyId& id : ids) {
    auto& key = keys_[id];
    if (key == nullptr) continue;
    forgotten_.push_back(key->subject);
    key = nullptr;
    ++destroyed;
  }
  return destroyed;
}

void MemoryKeys::allow_again(std::string_view subject) {
  const std::lock_guard lock{mutex_};
  std::erase_if(forgotten_, [&](const Subject& one) { return one.name == subject; });
}

}  // namespace stela::testing
