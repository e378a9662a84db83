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

/// What becomes of publishable events that were appended before there was an outbox.
enum class Enable : std::uint8_t {
  /// They are left alone: only what is appended from now on is published.
  from_now,
  /// They are enqueued too, oldest first.
  backfill,
};

struct OutboxOptions {
  // Facts of the database, set when the outbox is made. Leave them out for one that is there, or
  // say what it must be.
  /// 1 unless given: one partition, in total order.
  std::optional<int> partition_count = {};
  /// `stream` unless given.
  std::optional<Fence> fence = {};
  /// True unless given: workers share partitions by leases.
  std::optional<bool> leasing = {};
  const Partitioner* partitioner = &by_stream();

  /// Must be said when the outbox is made in a database that has publishable events.
  std::optional<Enable> enable = {};
};

/// A participant of every append: each event that is to be published becomes a pointer, its global
/// sequence, in the same transaction. The payload stays in the event store.
/// Threads: any number at once.
class STELA_OUTBOX_EXPORT Outbox {
 public:
  /// Makes the tables if need be, and takes part in the store's appends from now on. UsageError if
  /// an option contradicts what the database says. `store` and the partitioner must outlive it.
  explicit Outbox(Store& store, const OutboxOptions& options = {});
  /// Detaches from the store: waits for the open transaction of another thread, however long that
  /// takes. A transaction that waits for the thread that is here hangs.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  Store& store() const noexcept;
  const Partitioner& partitioner() const noexcept;
  Fence fence() const noexcept;
  bool leasing() const noexcept;
  /// How many partitions events are spread over now; a resize changes it.
  int partition_count() const;

 private:
  class Participant;
  std::unique_ptr<Participant> participant_;
};

}  // namespace stela
