// The rows of a MemoryStore, and the cursor over them.
#pragma once

#include <stela/framework/event_store.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stela::testing {

/// An event with everything that a StoredEvent points to.
struct Row {
  StreamId stream;
  EventKind kind;
  std::string correlation;
  std::string metadata;
  std::string payload;
  GlobalSequence sequence;
  StreamVersion version;
  EventId id;
  Timestamp recorded_at;
  EventId causation_id;
  StreamVersion published_before;
  std::string tags;

  StoredEvent view() const noexcept {
    return {sequence,     stream,   version,          kind,    id,  recorded_at, correlation,
            causation_id, metadata, published_before, payload, tags};
  }
};

/// Rows never move or change, so a cursor keeps pointers to the rows that it found.
class RowCursor final : public EventCursor {
 public:
  explicit RowCursor(std::vector<std::shared_ptr<const Row>> rows) : rows_{std::move(rows)} {}

  std::span<const StoredEvent> next_page() override {
    page_.clear();
    for (std::size_t i = 0; i < page_size && next_ < rows_.size(); ++i) {
      page_.push_back(rows_[next_++]->view());
    }
    return page_;
  }

 private:
  static constexpr std::size_t page_size = 256;
  std::vector<std::shared_ptr<const Row>> rows_;
  std::size_t next_ = 0;
  std::vector<StoredEvent> page_;
};

inline EventRange range_of(std::vector<std::shared_ptr<const Row>> rows, Direction direction,
                           std::int64_t limit) {
  if (direction == Direction::backward) std::reverse(rows.begin(), rows.end());
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(limit, 0));
  if (rows.size() > wanted) rows.resize(wanted);
  return EventRange{std::make_unique<RowCursor>(std::move(rows))};
}

template <class T>
bool matches(const std::vector<T>& wanted, std::string_view value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

}  // namespace stela::testing
