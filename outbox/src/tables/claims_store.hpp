// The relay's port to an outbox without leasing: messages are claimed, not partitions.
#pragma once

#include "tables/relay_store.hpp"

#include <stela/framework/clock.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace stela::outbox {

/// Every worker has the one partition that there is, and takes messages out of it under a claim of
/// its own, for `claim_ttl`: the ttl of its lease. A renewal makes all of its claims last longer;
/// one that comes too late says that the lease is lost, so that the worker forgets what it had
/// claimed. What it marks all the same is compared with the claim, message by message.
/// Threads: one at a time.
class ClaimsStore final : public RelayStore {
 public:
  explicit ClaimsStore(stela::Store& store) : RelayStore{store} {}

  /// Partitions are everybody's: nobody takes a share from another.
  relay::Overview look() override;
  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override;
  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override;
  void release(const relay::Lease& lease) override;
  /// What was sent again first, then what waits, in order; the cursor doesn't matter.
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override;
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override;
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override;
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override;
  /// Nothing is lost here: nobody compares with what the broker had.
  std::optional<relay::Standing> acquire_lost(PartitionId, std::string_view,
                                              std::chrono::microseconds) override {
    return std::nullopt;
  }
  bool continue_lost(const relay::Lease&, bool) override { return false; }

 private:
  void give_back(database::Connection& connection, const relay::Lease& lease) override;
  bool can_claim(PartitionId partition);
  std::vector<relay::PendingMessage> claim(PartitionId partition, const relay::BatchLimit& limit);
  std::chrono::steady_clock::time_point steady_now() const;

  std::string claim_;
  std::chrono::microseconds ttl_{0};
  /// What was claimed or renewed lasts until then.
  std::chrono::steady_clock::time_point claimed_until_{};
};

}  // namespace stela::outbox
