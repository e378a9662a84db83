#include <stela/framework/error.hpp>
#include <stela/testing/memory_keys.hpp>

#include <algorithm>

namespace stela::testing {

std::shared_ptr<const SubjectKey> MemoryKeys::key_of(const Subject& subject) {
  const std::lock_guard lock{mutex_};
  for (const auto& [id, key] : keys_) {
    if (key != nullptr && key->subject == subject) return key;
  }
  if (std::find(forgotten_.begin(), forgotten_.end(), subject.name) != forgotten_.end()) {
    throw SubjectForgotten{"'" + subject.name + "' was forgotten"};
  }
  const KeyId id = KeyId::make();
  return keys_[id] = std::make_shared<const SubjectKey>(SubjectKey{id, subject, Secret::random()});
}

std::shared_ptr<const SubjectKey> MemoryKeys::find(const KeyId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = keys_.find(id);
  if (found == keys_.end()) throw KeyMissing{"no key '" + id.to_string() + "' was made here"};
  return found->second;
}

void MemoryKeys::forget(std::string_view subject) {
  const std::lock_guard lock{mutex_};
  forgotten_.emplace_back(subject);
  for (auto& [id, key] : keys_) {
    if (key != nullptr && key->subject.name == subject) key = nullptr;
  }
}

void MemoryKeys::allow_again(std::string_view subject) {
  const std::lock_guard lock{mutex_};
  std::erase(forgotten_, subject);
}

}  // namespace stela::testing
