// Where streams stand, so that an append needn't ask the database each time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::sqlite {

struct StreamHead {
  /// The stream's number in the database.
  std::int64_t stream = 0;
  std::int64_t version = 0;
  /// The version of its last event that was to be published.
  std::int64_t published = 0;
};

/// The heads of streams that the writer has met. Valid only as long as nobody else writes: the
/// writer clears it when another connection did.
/// Threads: one at a time.
class StreamHeads {
 public:
  static constexpr std::size_t max_size = 65'536;

  using Entry = std::pair<const std::string, StreamHead>;

  /// Null if the head isn't known.
  Entry* find(const std::string& name) noexcept {
    const auto found = heads_.find(name);
    return found != heads_.end() ? &*found : nullptr;
  }

  Entry& add(const std::string& name, const StreamHead& head) {
    return *heads_.insert_or_assign(name, head).first;
  }

  /// Remembers that the transaction changes this head.
  void touch(const Entry& entry) { touched_.push_back(&entry.first); }

  /// A point in the transaction to roll back to.
  std::size_t mark() const noexcept { return touched_.size(); }
  void roll_back_to(std::size_t mark) noexcept {
    while (touched_.size() > mark) {
      const std::string* const name = touched_.back();
      touched_.pop_back();
      // Touched before the mark as well: which version it had there, nobody remembers.
      for (const auto& other : touched_) dropped_touched_ = dropped_touched_ || other == name;
      heads_.erase(*name);
      if (dropped_touched_) break;
    }
    // A head that is looked up again is what this transaction made of it, and isn't known as
    // touched: it must not outlive a roll-back.
    if (dropped_touched_) drop_all();
  }
  void commit() noexcept {
    touched_.clear();
    dropped_touched_ = false;
  }
  /// Bounds the memory; between transactions only.
  void trim() noexcept {
    if (heads_.size() > max_size) heads_.clear();
  }
  void clear() noexcept {
    drop_all();
    dropped_touched_ = false;
  }

 private:
  void drop_all() noexcept {
    heads_.clear();
    touched_.clear();
  }

  std::unordered_map<std::string, StreamHead> heads_;
  std::vector<const std::string*> touched_;
  /// The transaction changed heads that aren't in touched_ any more.
  bool dropped_touched_ = false;
};

}  // namespace stela::sqlite
