// A process's knowledge of which tags all existing events have.
#pragma once

#include <stela/framework/query.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// The tag categories that all events of a type have, as of one tag epoch. Threads: any number at
/// once.
class TagCoverage {
 public:
  bool has(std::span<const TagNeed> needs, std::int64_t epoch) const {
    const std::shared_lock lock{mutex_};
    return epoch == epoch_ && std::all_of(needs.begin(), needs.end(), [&](const TagNeed& need) {
             const auto found = by_type_.find(need.type);
             return found != by_type_.end() &&
                    std::any_of(found->second.begin(), found->second.end(),
                                [&](const Category& one) { return one.is_of(need); });
           });
  }
  void add(std::span<const TagNeed> needs, std::int64_t epoch) {
    const std::lock_guard lock{mutex_};
    if (epoch != epoch_) by_type_.clear();
    epoch_ = epoch;
    for (const TagNeed& need : needs) {
      by_type_[std::string{need.type}].push_back(
          {std::string{need.category}, need.is_of_several()});
    }
  }

 private:
  struct Category {
    std::string name;
    bool is_of_several;

    bool is_of(const TagNeed& need) const noexcept {
      return name == need.category && is_of_several == need.is_of_several();
    }
  };

  mutable std::shared_mutex mutex_;
  std::int64_t epoch_ = 0;
  std::map<std::string, std::vector<Category>, std::less<>> by_type_;
};

}  // namespace stela
