// The relay's port to an outbox whose partitions are leased.
#pragma once

#include "tables/relay_store.hpp"

namespace stela::outbox {

/// Threads: one at a time.
class LeaseStore final : public RelayStore {
 public:
  /// `store` must outlive it.
  explicit LeaseStore(stela::Store& store) : RelayStore{store} {}

  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override;
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override;
  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override;
  void release(const relay::Lease& lease) override;
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override;
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override;
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override;
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override;
  bool continue_lost(const relay::Lease& lease, bool is_whole) override;

 private:
  template <class Acquire>
  std::optional<relay::Standing> take(PartitionId partition, std::string_view worker,
                                      std::chrono::microseconds ttl);

  void give_back(database::Connection& connection, const relay::Lease& lease) override;

  /// The newest generation that is known to have no undrained predecessor, in this run of the
  /// server.
  std::int64_t open_generation_ = 0;
  Uuid run_ = {};
};

}  // namespace stela::outbox
