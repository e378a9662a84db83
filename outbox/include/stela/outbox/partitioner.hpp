// Which partition an event belongs to.
#pragma once

#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/outbox/export.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela {

/// An event as a partitioner sees it: what is known of it before it has a sequence.
struct PartitionedEvent {
  const StreamId& stream;
  std::string_view type;
  int schema_version = 1;
  /// JSON object of actor, trace and headers, or empty.
  std::string_view metadata;
  std::string_view payload;

  /// One that is stored already.
  static PartitionedEvent of(const StoredEvent& event) noexcept {
    return {event.stream, event.type(), event.schema_version(), event.metadata, event.payload};
  }
};

/// What events are kept in order by: those of one key are published in the order in which they were
/// appended. Its name is a fact of the database.
/// Threads: called on the threads that append.
class STELA_OUTBOX_EXPORT Partitioner {
 public:
  virtual ~Partitioner() = default;
  virtual std::string_view name() const noexcept = 0;
  /// A view of something that outlives the call: the event's own, or `scratch`.
  virtual std::string_view key(const PartitionedEvent& event, std::string& scratch) const = 0;
};

/// By stream: the default.
STELA_OUTBOX_EXPORT const Partitioner& by_stream() noexcept;

/// One partition of the outbox, as the database numbers it: 0 is the only one of an outbox that has
/// no more, and 1, 2, … are the first, second, … of one that has several. So the only one and the
/// first of several are two: they are published to different places.
struct PartitionId {
  int number = 0;

  /// The partition of `key` among `count`: the CRC-32 (as in zlib) of the key, modulo the count.
  /// Published, so that others can compute it too; docs/schema.md has test vectors.
  STELA_OUTBOX_EXPORT static PartitionId of(std::string_view key, int count) noexcept;
  /// The same in two steps.
  STELA_OUTBOX_EXPORT static std::uint32_t hash(std::string_view key) noexcept;
  static constexpr PartitionId of_hash(std::uint32_t hash, int count) noexcept {
    return count <= 1 ? PartitionId{0}
                      : at(static_cast<int>(hash % static_cast<std::uint32_t>(count)), count);
  }
  /// The `index`-th of `count`, from 0.
  static constexpr PartitionId at(int index, int count) noexcept {
    return {count == 1 ? 0 : index + 1};
  }

  /// "all" for the only one, else "p00", "p01", …
  STELA_OUTBOX_EXPORT std::string label() const;

  friend constexpr auto operator<=>(PartitionId, PartitionId) = default;
};

}  // namespace stela
