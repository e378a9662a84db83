// The outbox: enqueues publishable events in the transaction that appends them.
#pragma once

#include <stela/eventstore/sqlite.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace stela {

struct OutboxOptions {
  /// Facts of the database, set when the outbox is made (1, by stream unless given).
  std::optional<int> partition_count = {};
  const Partitioner* partitioner = &by_stream();
};

/// A participant of every append: each event that is to be published becomes a pointer, its global
/// sequence, in the same transaction. The payload stays in the event store.
/// Threads: any number at once.
class STELA_OUTBOX_EXPORT Outbox {
 public:
  /// Makes the tables if need be and takes part in the store's appends from now on. `store` must
  /// outlive the outbox.
  explicit Outbox(sqlite::Store& store, const OutboxOptions& options = {});
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  sqlite::Store& store() noexcept;

  /// The partitions that messages may wait in.
  std::vector<int> partitions();
  /// The sequences that wait in a partition, in order.
  std::vector<GlobalSequence> next(int partition, int limit);
  /// Everything in the partition up to `through` was published.
  void mark_published(int partition, GlobalSequence through);

 private:
  class Participant;
  std::unique_ptr<Participant> participant_;
};

}  // namespace stela
