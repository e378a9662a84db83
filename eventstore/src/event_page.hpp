// A page of events that owns what its events point to.
#pragma once

#include <stela/framework/stored_event.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stela {

/// Copies of events, valid until the page is cleared or refilled. Stream ids and kinds are pointed
/// to, not copied.
/// Threads: one at a time.
class EventPage {
 public:
  static constexpr std::size_t first_capacity = std::size_t{64} * 1024;
  static constexpr std::size_t max_capacity = std::size_t{256} * 1024;

  std::span<const StoredEvent> events() const noexcept { return events_; }
  bool empty() const noexcept { return events_.empty(); }

  void clear() noexcept {
    events_.clear();
    used_ = 0;
  }

  /// So many events may come.
  void reserve(std::size_t events) { events_.reserve(events); }

  /// Makes the page as large as it may get: for readers that go on after the first one.
  void grow() {
    if (capacity_ < max_capacity) allocate(max_capacity);
  }

  /// False if the page is full; an event that is too large for any page gets one of its own.
  bool add(const StoredEvent& event) {
    const std::size_t size =
        event.correlation.size() + event.metadata.size() + event.payload.size();
    if (bytes_ == nullptr) allocate(first_capacity);
    if (size > capacity_ - used_) {
      if (!events_.empty()) return false;
      allocate(size);
    }
    StoredEvent& copy = events_.emplace_back(event);
    copy.correlation = keep(event.correlation);
    copy.metadata = keep(event.metadata);
    copy.payload = keep(event.payload);
    return true;
  }

 private:
  void allocate(std::size_t capacity) {
    // Only ever called on an empty page: nothing points into the old bytes.
    bytes_ = std::make_unique_for_overwrite<char[]>(capacity);
    capacity_ = capacity;
    used_ = 0;
  }

  std::string_view keep(std::string_view text) noexcept {
    if (text.empty()) return {};
    char* const begin = bytes_.get() + used_;
    std::memcpy(begin, text.data(), text.size());
    used_ += text.size();
    return {begin, text.size()};
  }

  std::vector<StoredEvent> events_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
};

}  // namespace stela
