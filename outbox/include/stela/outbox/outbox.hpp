// The outbox: enqueues publishable events in the transaction that appends them.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace stela {

/// What happens to publishable events that are older than the outbox.
enum class Enable : std::uint8_t {
  /// Ignore them: only events that are appended from now on are published.
  from_now,
  /// Enqueue them too, the oldest first.
  backfill,
};

struct OutboxOptions {
  // Facts of the database, set when the outbox is created. For an existing outbox leave them out,
  // or state what they must be: UsageError if they differ.
  /// Default 1: one partition, in total order.
  std::optional<int> partition_count = {};
  /// Default `stream`.
  std::optional<Fence> fence = {};
  /// Default true: workers share partitions by leases.
  std::optional<bool> leasing = {};
  const Partitioner* partitioner = &by_stream();

  /// Must be set if the outbox is created in a database that has publishable events.
  std::optional<Enable> enable = {};
};

/// Creates or migrates the outbox's tables without creating an outbox, for a role that owns the
/// tables while another role opens the outbox. `Outbox` migrates by itself.
STELA_OUTBOX_EXPORT void migrate_outbox(Store& store);

/// Takes part in every append: for each event that must be published it stores a pointer, the
/// event's global sequence, in the same transaction. The payload stays in the event store. Threads:
/// any number at once.
class STELA_OUTBOX_EXPORT Outbox {
 public:
  /// Creates the tables if they are missing, and takes part in the store's appends from now on.
  /// UsageError if an option contradicts the database. `store` and the partitioner must outlive it.
  explicit Outbox(Store& store, const OutboxOptions& options = {});
  /// Detaches from the store after waiting, without a limit, for the open transaction of another
  /// thread. That transaction must not wait for this thread: both would hang.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  Store& store() const noexcept;
  const Partitioner& partitioner() const noexcept;
  Fence fence() const noexcept;
  bool leasing() const noexcept;
  /// How many partitions new events are spread over. A resize changes it.
  int partition_count() const;

 private:
  class Participant;
  std::unique_ptr<Participant> participant_;
};

}  // namespace stela
