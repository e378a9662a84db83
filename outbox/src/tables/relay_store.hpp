// The relay's port to the outbox's tables.
#pragma once

#include "database/connection.hpp"
#include "database/presence.hpp"
#include "relay/outbox_port.hpp"
#include "tables/pending_batch.hpp"

#include <stela/eventstore/store.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace stela::outbox {

/// Notes in the journal that a partition was stopped.
void note_stop(database::Connection& connection, Timestamp at, PartitionId partition,
               StopReason reason, std::string_view detail);

/// Reads through the store's readers and writes through its one writer, so a relay waits in the
/// same queue as appending threads.
/// Threads: one at a time.
class RelayStore final : public relay::OutboxPort {
 public:
  /// `store` must outlive it. Without `leasing` its worker is the only one: it refuses to start
  /// beside a live worker, and ends the leases of dead ones.
  RelayStore(stela::Store& store, bool leasing);

  std::string store_id() const override;
  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override;
  void leave(std::string_view worker) noexcept override;
  relay::Overview look() override;
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override;
  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override;

  // Leases: leases.cpp.
  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override;
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override;
  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override;
  void release(const relay::Lease& lease) override;

  // Changes of a partition: partition_changes.cpp.
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override;
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override;
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override;
  bool continue_lost(const relay::Lease& lease) override;

 private:
  Timestamp now() const;
  /// Runs `work` in a transaction, rolled back if it returns false. Also false if the server's run
  /// isn't the lease's.
  bool write(const relay::Lease& lease, bool durable,
             const std::function<bool(database::Connection&)>& work);
  std::unique_ptr<StoredBatch> make_batch();
  /// Takes a partition that is stopped for this reason, or isn't stopped if the reason is empty.
  std::optional<relay::Standing> take(PartitionId partition, std::string_view worker,
                                      std::chrono::microseconds ttl, std::string_view stopped);
  /// Returns whether the last heartbeat reported being cut off.
  bool require_free_name(database::Connection& connection, std::string_view worker,
                         Timestamp at) const;
  /// Called once a minute, for the history.
  void sample(database::Connection& connection, Timestamp at);
  void require_alone(database::Connection& connection, std::string_view worker, Timestamp at) const;

  stela::Store& store_;
  const bool leasing_;
  /// Shows other processes whether the workers named here still run.
  std::unique_ptr<database::Presence> presence_;
  std::shared_ptr<BatchMemory> memory_ = std::make_shared<BatchMemory>();
  /// The newest generation known to have no undrained predecessor, in this run of the server.
  std::int64_t open_generation_ = 0;
  Uuid run_ = {};
  std::int64_t sampled_minute_ = 0;
};

}  // namespace stela::outbox
