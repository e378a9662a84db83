// Caches the heads of streams, to save queries during appends.
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
  /// The version of its last event that must be published; 0 if none.
  std::int64_t published = 0;
};

/// The heads of streams that the writer has met. Valid only while nobody else writes: the writer
/// clears it after another connection did.
/// Threads: one at a time.
class StreamHeads {
 public:
  static constexpr std::size_t max_size = 65'536;

  using Entry = std::pair<const std::string, StreamHead>;

  /// Null if the head isn't cached.
  Entry* find(const std::string& name) noexcept {
    const auto found = heads_.find(name);
    return found != heads_.end() ? &*found : nullptr;
  }

  Entry& add(const std::string& name, const StreamHead& head) {
    return *heads_.insert_or_assign(name, head).first;
  }

  /// Saves the head before the transaction changes it.
  void touch(Entry& entry) { touched_.push_back({&entry.second, entry.second}); }

  /// A point in the transaction to roll back to.
  std::size_t mark() const noexcept { return touched_.size(); }
  void roll_back_to(std::size_t mark) noexcept {
    for (; touched_.size() > mark; touched_.pop_back()) {
      *touched_.back().head = touched_.back().before;
    }
  }
  void commit() noexcept { touched_.clear(); }
  /// Bounds the memory. Only between transactions.
  void trim() noexcept {
    if (heads_.size() > max_size) heads_.clear();
  }
  /// Only between transactions.
  void clear() noexcept {
    heads_.clear();
    touched_.clear();
  }

 private:
  struct Touched {
    StreamHead* head;
    StreamHead before;
  };

  std::unordered_map<std::string, StreamHead> heads_;
  std::vector<Touched> touched_;
};

}  // namespace stela::sqlite
