// The relay's port to the outbox, on SQLite.
#pragma once

#include "database/connection.hpp"
#include "database/presence.hpp"
#include "relay/store.hpp"
#include "sqlite/pending_batch.hpp"

#include <stela/eventstore/store.hpp>

#include <functional>
#include <memory>
#include <string>

namespace stela::outbox {

/// Reads through the store's readers, and writes through its one writer, so that a relay beside
/// appending threads waits in the same queue as they do.
/// Threads: one at a time.
class RelayStore : public relay::Store {
 public:
  /// `store` must outlive it.
  explicit RelayStore(stela::Store& store);

  std::string store_id() const override;
  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override;
  void leave(std::string_view worker) noexcept override;
  relay::Overview look(std::chrono::microseconds lease_ttl,
                       std::chrono::microseconds heartbeat_ttl) override;
  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override;
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override;
  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override;
  void release(const relay::Lease& lease) override;
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override;
  std::unique_ptr<relay::PendingBatch> read_again(const relay::PendingMessage& message) override;
  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override;
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override;
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override;
  bool stop(const relay::Lease& lease, std::string_view reason, std::string_view detail) override;
  bool continue_lost(const relay::Lease& lease, bool is_whole) override;

 protected:
  Timestamp now() const;
  /// Runs `work` in a transaction, rolled back if it returns false.
  bool write(bool durable, const std::function<bool(database::Connection&)>& work);
  std::unique_ptr<SqliteBatch> make_batch();

  stela::Store& store_;

 private:
  template <class Acquire>
  std::optional<relay::Standing> take(PartitionId partition, std::string_view worker,
                                      std::chrono::microseconds ttl);
  void require_free_name(database::Connection& connection, std::string_view worker, Timestamp at,
                         std::chrono::microseconds ttl) const;

  /// Others see by it whether the workers that are told of here still run.
  std::unique_ptr<database::Presence> presence_;
  /// The newest generation that is known to have no undrained predecessor.
  std::int64_t open_generation_ = 0;
  std::shared_ptr<BatchMemory> memory_ = std::make_shared<BatchMemory>();
};

}  // namespace stela::outbox
