// What every relay asks of the outbox's tables.
#pragma once

#include "database/connection.hpp"
#include "database/presence.hpp"
#include "relay/outbox_port.hpp"
#include "tables/pending_batch.hpp"

#include <stela/eventstore/store.hpp>

#include <functional>
#include <memory>
#include <string>

namespace stela::outbox {

/// The part of the port that is the same with leases and with claims: workers, and reading. Reads
/// through the store's readers, and writes through its one writer, so that a relay beside appending
/// threads waits in the same queue as they do.
/// Threads: one at a time.
class RelayStore : public relay::OutboxPort {
 public:
  std::string store_id() const override;
  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override;
  void leave(std::string_view worker) noexcept override;
  relay::Overview look() override;
  std::unique_ptr<relay::PendingBatch> read_again(const relay::PendingMessage& message) override;
  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override;

 protected:
  /// `store` must outlive it.
  explicit RelayStore(stela::Store& store);

  Timestamp now() const;
  /// Runs `work` in a transaction, rolled back if it returns false. False, too, if the server's run
  /// is another than the lease's.
  bool write(const relay::Lease& lease, bool durable,
             const std::function<bool(database::Connection&)>& work);
  std::unique_ptr<StoredBatch> make_batch();

  stela::Store& store_;

 private:
  virtual void give_back(database::Connection& connection, const relay::Lease& lease) = 0;
  void require_free_name(database::Connection& connection, std::string_view worker,
                         Timestamp at) const;

  /// Others see by it whether the workers that are told of here still run.
  std::unique_ptr<database::Presence> presence_;
  std::shared_ptr<BatchMemory> memory_ = std::make_shared<BatchMemory>();
};

}  // namespace stela::outbox
