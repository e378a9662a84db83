// Which partition an event belongs to.
#pragma once

#include <stela/framework/stored_event.hpp>
#include <stela/outbox/export.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela {

/// What events are kept in order by: those of one key are published in the order in which they were
/// appended. Its name is a fact of the database.
/// Threads: called on the threads that append.
class STELA_OUTBOX_EXPORT Partitioner {
 public:
  virtual ~Partitioner() = default;
  virtual std::string_view name() const noexcept = 0;
  /// A view of something that outlives the call: the event's own, or `scratch`.
  virtual std::string_view key(const StoredEvent& event, std::string& scratch) const = 0;
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
  /// The `index`-th of `count`, from 0.
  static constexpr PartitionId at(int index, int count) noexcept {
    return {count == 1 ? 0 : index + 1};
  }

  /// "all" for the only one, else "p00", "p01", …
  STELA_OUTBOX_EXPORT std::string label() const;

  friend constexpr auto operator<=>(PartitionId, PartitionId) = default;
};

}  // namespace stela
