// What Stela's reader does for each event, by hand: the part of its cost that no reader saves that
// hands out whole events and lets no damaged byte pass.
#pragma once

#include "raw.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stela::bench {

/// The columns of `events AS e` that are read of each event.
inline constexpr const char* raw_event_columns =
    "e.sequence, e.stream, e.version, e.kind, e.recorded_at, e.event_id, e.correlation_id, "
    "e.causation_id, e.published_before, e.metadata, e.checksum, e.payload";
inline constexpr int raw_event_column_count = 12;

/// What the checksum of an event covers.
struct RawEvent {
  std::int64_t sequence = 0;
  std::int64_t version = 0;
  std::int64_t recorded_at = 0;
  std::int64_t published_before = 0;
  std::string_view event_id = {};
  std::string_view correlation_id = {};
  std::string_view causation_id = {};
  std::string_view metadata = {};
  std::string_view payload = {};
};

/// Reads rows with all of their columns and the names of their streams, and checks the checksum of
/// each, as docs/schema.md defines it.
/// Threads: one at a time.
class RawRowCheck {
 public:
  /// Reads the names of all streams and kinds there are.
  explicit RawRowCheck(RawDatabase& database);

  /// Throws if the row of the statement, whose first columns are `raw_event_columns`, isn't what
  /// was stored.
  void check(const RawStatement& row);
  std::int64_t kind() const noexcept { return kind_; }
  std::string_view payload() const noexcept { return payload_; }

  std::int64_t kind_of(std::string_view type) const;
  std::int64_t checksum(const RawEvent& event, std::string_view stream, std::int64_t kind) const;

 private:
  struct Kind {
    std::string type;
    std::int64_t schema_version = 0;
    std::int64_t publishes = 0;
  };
  const std::string& stream_name(std::int64_t stream);

  RawStatement name_;
  std::unordered_map<std::int64_t, std::string> streams_;
  std::unordered_map<std::int64_t, Kind> kinds_;
  std::int64_t kind_ = 0;
  std::string_view payload_;
};

/// The checksum of a row of event_tags.
std::int64_t raw_tags_checksum(std::int64_t sequence, std::int64_t part, std::string_view tags);

/// Reads the events of a store.
/// Threads: one at a time.
class RawCheckedReader {
 public:
  explicit RawCheckedReader(const std::string& path);

  /// Calls `f(kind, payload)` for each event of the store.
  template <class F>
  void read_all(F&& f) {
    while (all_.step()) {
      rows_.check(all_);
      f(rows_.kind(), rows_.payload());
    }
    all_.reset();
  }

  /// The number that LineAdded has as a kind.
  std::int64_t added_kind() const noexcept { return added_kind_; }

 private:
  RawDatabase database_;
  RawStatement all_;
  RawRowCheck rows_;
  const std::int64_t added_kind_;
};

}  // namespace stela::bench
