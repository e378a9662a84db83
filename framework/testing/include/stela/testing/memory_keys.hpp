// Keys in memory, for tests of personal data.
#pragma once

#include <stela/framework/keyring.hpp>
#include <stela/testing/export.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stela::testing {

/// The keys of a test, which are gone when it ends. Threads: any number at once.
class STELA_TESTING_EXPORT MemoryKeys final : public Keyring {
 public:
  std::shared_ptr<const SubjectKey> key_of(const Subject& subject) override;
  std::shared_ptr<const SubjectKey> find(const KeyId& id) override;

  std::vector<KeyInfo> keys_of(std::string_view subject) override;
  std::size_t destroy(std::span<const KeyId> ids) override;
  void allow_again(std::string_view subject) override;

 private:
  std::mutex mutex_;
  /// A destroyed key is null.
  std::unordered_map<KeyId, std::shared_ptr<const SubjectKey>> keys_;
  std::int64_t last_ = 0;
  std::vector<Subject> forgotten_;
};

}  // namespace stela::testing
