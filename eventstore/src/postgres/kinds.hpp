// This process's cache of event kinds.
#pragma once

#include <stela/framework/stored_event.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace stela::postgres {

/// Kinds are compared completely: after a crash, the server may reuse a number for another kind.
/// Results are valid as long as the table.
/// Threads: any number at once.
class KindTable {
 public:
  struct Key {
    std::int32_t number;
    std::string_view type;
    int version;
    bool publishes;

    bool is(const EventKind& kind) const noexcept {
      return kind.number == number && kind.schema_version == version &&
             kind.publishes == publishes && kind.type == type;
    }
  };

  const EventKind& find(const Key& key);

 private:
  const EventKind* find_known(const Key& key) const;

  std::shared_mutex mutex_;
  /// By number; guarded by mutex_.
  std::unordered_multimap<std::int32_t, std::unique_ptr<const EventKind>> kinds_;
};

}  // namespace stela::postgres
