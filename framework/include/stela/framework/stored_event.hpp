// Stored events: bytes and their properties.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/context.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stela {
namespace detail {

/// A number that no other kind in this process has or had.
STELA_FRAMEWORK_EXPORT std::uint64_t next_kind_identity() noexcept;

}  // namespace detail

/// The properties that many events have in common. A store keeps each combination once and numbers
/// them from 1.
struct EventKind {
  std::int32_t number = 0;
  std::string type = {};
  int schema_version = 1;
  /// Whether events of this kind must be published. Decided when the event was appended.
  bool publishes = false;
  /// For caches to compare. Unlike the number, it never stands for another kind: not in another
  /// store, and not after a rollback. Copies have the same one.
  std::uint64_t identity = detail::next_kind_identity();
};

/// One event of a store. It is a view: the function that returns it says how long it is valid.
struct STELA_FRAMEWORK_EXPORT StoredEvent {
  GlobalSequence sequence;
  const StreamId& stream;
  StreamVersion version;
  const EventKind& kind;
  EventId id;
  Timestamp recorded_at;
  /// As stored. Empty: this event begins a correlation, whose id is its own.
  std::string_view correlation;
  EventId causation_id;
  /// A JSON object of actor, trace and headers, or empty.
  std::string_view metadata;
  /// The stream version of the previous event that must be published, or 0.
  StreamVersion published_before;
  std::string_view payload;
  /// The tags beside that of its stream, separated by spaces. Set only by `EventLog::read`,
  /// `EventStore::read_at` and reads with `with_tags`.
  std::string_view tags = {};

  const std::string& type() const noexcept { return kind.type; }
  int schema_version() const noexcept { return kind.schema_version; }
  bool publishes() const noexcept { return kind.publishes; }
  std::string correlation_id() const {
    return correlation.empty() ? id.to_string() : std::string{correlation};
  }

  /// The whole context, parsed. CorruptEvent if the stored metadata can't be parsed.
  Context context() const;

  /// For messages: "event 17 (order.placed v1, version 3 of order-7)".
  std::string describe() const;
};

/// A stored event with its decoded form: the argument of typed handlers. It is a view of both. Copy
/// what must outlive the call.
template <class E>
class Recorded {
 public:
  Recorded(const E& event, const StoredEvent& record) noexcept : event_{event}, record_{record} {}

  const E& event() const noexcept { return event_; }
  const E* operator->() const noexcept { return &event_; }
  const E& operator*() const noexcept { return event_; }

  const StoredEvent& record() const noexcept { return record_; }
  GlobalSequence sequence() const noexcept { return record_.sequence; }
  const StreamId& stream() const noexcept { return record_.stream; }
  StreamVersion version() const noexcept { return record_.version; }
  EventId id() const noexcept { return record_.id; }
  Timestamp recorded_at() const noexcept { return record_.recorded_at; }

 private:
  const E& event_;
  const StoredEvent& record_;
};

}  // namespace stela
