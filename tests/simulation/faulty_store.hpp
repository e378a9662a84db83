// A worker's store with everything that can go wrong on the way to it.
#pragma once

#include "relay/core.hpp"
#include "relay/outbox_port.hpp"
#include "simulation/world.hpp"

#include <stela/framework/error.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace stela::sim {

/// Thrown through the core when its process is killed: nothing of it is left.
struct Killed {};

struct StoreFaults {
  double busy = 0;
  double full = 0;
};

/// Asked before and after each call: may throw Killed, or let time pass for everybody else.
using Interruption = std::function<void()>;

/// Hands each call on to the real store, unless something happens.
class FaultyStore final : public relay::OutboxPort {
  template <class Call>
  auto disturbed(Call&& call) {
    interruption_();
    if (chance_.happens(faults_.busy)) throw StoreBusy{"simulated"};
    if (chance_.happens(faults_.full)) throw StoreFull{"simulated"};
    auto result = call();
    interruption_();
    return result;
  }

 public:
  FaultyStore(std::unique_ptr<relay::OutboxPort> store, const StoreFaults& faults, Chance& chance,
              Interruption interruption)
      : store_{std::move(store)},
        faults_{faults},
        chance_{chance},
        interruption_{std::move(interruption)} {}

  std::string store_id() const override { return store_->store_id(); }
  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override {
    return disturbed([&] { return store_->heartbeat(worker, ttl, broker); });
  }
  void leave(std::string_view worker) noexcept override { store_->leave(worker); }
  relay::Overview look() override {
    return disturbed([&] { return store_->look(); });
  }
  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override {
    return disturbed([&] { return store_->acquire(partition, worker, ttl); });
  }
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override {
    return disturbed([&] { return store_->acquire_lost(partition, worker, ttl); });
  }
  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override {
    return disturbed([&] { return store_->renew(lease, ttl); });
  }
  void release(const relay::Lease& lease) override {
    disturbed([&] {
      store_->release(lease);
      return true;
    });
  }
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override {
    return disturbed([&] { return store_->next(partition, cursor, limit); });
  }
  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override {
    return disturbed([&] { return store_->ids_of(sequences); });
  }
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override {
    return disturbed([&] { return store_->advance(lease, advance, durable); });
  }
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override {
    return disturbed([&] { return store_->note(lease, trouble); });
  }
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override {
    return disturbed([&] { return store_->stop(lease, reason, detail); });
  }
  bool continue_lost(const relay::Lease& lease) override {
    return disturbed([&] { return store_->continue_lost(lease); });
  }

 private:
  std::unique_ptr<relay::OutboxPort> store_;
  const StoreFaults& faults_;
  Chance& chance_;
  Interruption interruption_;
};

}  // namespace stela::sim
