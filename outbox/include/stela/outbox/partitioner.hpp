// Which partition an event belongs to.
#pragma once

#include <stela/framework/stored_event.hpp>
#include <stela/outbox/export.hpp>

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

/// A partition of `count`, from 0: the CRC-32 (as in zlib) of the key, modulo the count. Published,
/// so that others can compute it too; docs/schema.md has test vectors.
STELA_OUTBOX_EXPORT int partition_of(std::string_view key, int count) noexcept;

/// "all" for the only partition there is, else "p00", "p01", …
STELA_OUTBOX_EXPORT std::string partition_label(int partition, int count);

}  // namespace stela
