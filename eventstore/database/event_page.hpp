// A page of events that owns the memory behind them.
#pragma once

#include <stela/framework/stored_event.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stela {

/// Copies of events, valid until the page is cleared or refilled. Stream ids and kinds aren't
/// copied.
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

  /// Makes room for this many events.
  void reserve(std::size_t events) { events_.reserve(events); }

  /// How many bytes of a page the event occupies.
  static std::size_t size_of(const StoredEvent& event) noexcept {
    return event.correlation.size() + event.metadata.size() + event.payload.size() +
           event.tags.size();
  }

  /// Gives an empty page its full size, for readers that continue after the first page; or a larger
  /// one, for events that must come together.
  void grow(std::size_t capacity = max_capacity) {
    if (capacity_ < capacity) allocate(capacity);
  }

  /// False if the page is full. An event too large for any page gets a page of its own.
  bool add(const StoredEvent& event) { return add(event, event.stream); }

  /// The same, but refers to `stream`, which is equal to the event's and lives longer.
  bool add(const StoredEvent& event, const StreamId& stream) {
    const std::size_t size = size_of(event);
    if (bytes_ == nullptr) allocate(first_capacity);
    if (size > capacity_ - used_) {
      if (!events_.empty()) return false;
      allocate(size);
    }
    events_.push_back({.sequence = event.sequence,
                       .stream = stream,
                       .version = event.version,
                       .kind = event.kind,
                       .id = event.id,
                       .recorded_at = event.recorded_at,
                       .correlation = keep(event.correlation),
                       .causation_id = event.causation_id,
                       .metadata = keep(event.metadata),
                       .published_before = event.published_before,
                       .payload = keep(event.payload),
                       .tags = keep(event.tags)});
    return true;
  }

 private:
  void allocate(std::size_t capacity) {
    // The page is empty: nothing points into the old bytes.
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
