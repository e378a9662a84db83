// Ports that hand every call on: what a decorator changes, it overrides.
#pragma once

#include "relay/outbox_port.hpp"

#include <stela/outbox/publisher.hpp>

namespace stela::mutants {

class ForwardingStore : public relay::OutboxPort {
 public:
  explicit ForwardingStore(relay::OutboxPort& store) noexcept : store_{store} {}

  std::string store_id() const override { return store_.store_id(); }
  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override {
    return store_.heartbeat(worker, ttl, broker);
  }
  void leave(std::string_view worker) noexcept override { store_.leave(worker); }
  relay::Overview look() override { return store_.look(); }
  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override {
    return store_.acquire(partition, worker, ttl);
  }
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override {
    return store_.acquire_lost(partition, worker, ttl);
  }
  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override {
    return store_.renew(lease, ttl);
  }
  void release(const relay::Lease& lease) override { store_.release(lease); }
  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override {
    return store_.next(partition, cursor, limit);
  }
  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override {
    return store_.ids_of(sequences);
  }
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override {
    return store_.advance(lease, advance, durable);
  }
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override {
    return store_.note(lease, trouble);
  }
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override {
    return store_.stop(lease, reason, detail);
  }
  bool continue_lost(const relay::Lease& lease) override { return store_.continue_lost(lease); }

 private:
  relay::OutboxPort& store_;
};

class ForwardingPublisher : public Publisher {
 public:
  explicit ForwardingPublisher(Publisher& publisher) noexcept : publisher_{publisher} {}

  bool can(Fence fence) const noexcept override { return publisher_.can(fence); }
  bool can(Codec codec) const noexcept override { return publisher_.can(codec); }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    publisher_.connect(session, sink);
  }
  void disconnect() noexcept override { publisher_.disconnect(); }
  void publish(const OutgoingMessage& message) override { publisher_.publish(message); }
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    publisher_.read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { publisher_.probe(request); }
  void flush() override { publisher_.flush(); }

 private:
  Publisher& publisher_;
};

}  // namespace stela::mutants
