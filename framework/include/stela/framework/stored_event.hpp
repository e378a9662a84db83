// Events as a store hands them out: bytes and what is known about them.
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

/// A number that no other kind of this process has, or had.
STELA_FRAMEWORK_EXPORT std::uint64_t next_kind_identity() noexcept;

}  // namespace detail

/// What many events have in common; a store keeps each combination once and numbers it from 1.
struct EventKind {
  std::int32_t number = 0;
  std::string type = {};
  int schema_version = 1;
  /// Fixed when the event was appended: it was to be published.
  bool publishes = false;
  /// What a cache compares: unlike the number, it never stands for another kind, neither of another
  /// store nor after a roll-back. Copies have the same.
  std::uint64_t identity = detail::next_kind_identity();
};

/// One event of a store. A view: whoever hands it out says how long it is valid.
struct STELA_FRAMEWORK_EXPORT StoredEvent {
  GlobalSequence sequence;
  const StreamId& stream;
  StreamVersion version;
  const EventKind& kind;
  EventId id;
  Timestamp recorded_at;
  /// As stored; empty means that this event begins a correlation, under its own id.
  std::string_view correlation;
  EventId causation_id;
  /// JSON object of actor, trace and headers, or empty.
  std::string_view metadata;
  /// The version of the last event of the stream before this one that was to be published; 0 if
  /// there is none.
  StreamVersion published_before;
  std::string_view payload;

  const std::string& type() const noexcept { return kind.type; }
  int schema_version() const noexcept { return kind.schema_version; }
  bool publishes() const noexcept { return kind.publishes; }
  std::string correlation_id() const {
    return correlation.empty() ? id.to_string() : std::string{correlation};
  }

  /// All of it, parsed. CorruptEvent if the stored metadata isn't what Stela writes.
  Context context() const;

  /// For messages: "event 17 (order.placed v1, version 3 of order-7)".
  std::string describe() const;
};

/// A stored event, decoded: what typed handlers are called with.
/// A view of both; copy what is to outlive the call.
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
