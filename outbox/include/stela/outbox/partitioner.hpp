// Decides which partition an event belongs to.
#pragma once

#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/outbox/export.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela {

/// An event that has no sequence yet, as a partitioner sees it.
struct PartitionedEvent {
  const StreamId& stream;
  std::string_view type;
  int schema_version = 1;
  /// A JSON object of actor, trace and headers, or empty.
  std::string_view metadata;
  std::string_view payload;

  static PartitionedEvent of(const StoredEvent& event) noexcept {
    return {event.stream, event.type(), event.schema_version(), event.metadata, event.payload};
  }
};

/// Gives each event an ordering key. Events with the same key are published in the order in which
/// they were appended. The partitioner's name is a fact of the database. Threads: called on the
/// threads that append.
class STELA_OUTBOX_EXPORT Partitioner {
 public:
  virtual ~Partitioner() = default;
  virtual std::string_view name() const noexcept = 0;
  /// A view of something that outlives the call: a part of the event, or `scratch`.
  virtual std::string_view key(const PartitionedEvent& event, std::string& scratch) const = 0;
};

/// Orders by stream: the default.
STELA_OUTBOX_EXPORT const Partitioner& by_stream() noexcept;

/// The number of a partition in the database. 0 is the only partition of an outbox with one. 1, 2,
/// … are the first, second, … of an outbox with several. So 0 and 1 are different partitions: they
/// are published to different places.
struct PartitionId {
  int number = 0;

  /// The partition of `key` among `count`: the CRC-32 (as in zlib) of the key, modulo the count.
  /// The rule is public, so that other programs can compute it; docs/schema.md has test vectors.
  STELA_OUTBOX_EXPORT static PartitionId of(std::string_view key, int count) noexcept;
  /// The first step of `of`: the CRC-32 of the key.
  STELA_OUTBOX_EXPORT static std::uint32_t hash(std::string_view key) noexcept;
  static constexpr PartitionId of_hash(std::uint32_t hash, int count) noexcept {
    return count <= 1 ? PartitionId{0}
                      : at(static_cast<int>(hash % static_cast<std::uint32_t>(count)), count);
  }
  /// The partition with this index, from 0, among `count`.
  static constexpr PartitionId at(int index, int count) noexcept {
    return {count == 1 ? 0 : index + 1};
  }

  /// "all" for the only partition, otherwise "p00", "p01", …
  STELA_OUTBOX_EXPORT std::string label() const;

  friend constexpr auto operator<=>(PartitionId, PartitionId) = default;
};

}  // namespace stela
