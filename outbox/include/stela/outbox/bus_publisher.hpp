// Publishes inside this process, for applications that need no broker.
#pragma once

#include <stela/framework/event_bus.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>

namespace stela {

/// Delivers events to the listeners of a bus: each event at least once, and in order within its
/// stream, even after a crash. An event is marked as published once every listener has returned. If
/// a listener throws, all of them are called again later. After `max_attempts` the event is parked.
///
///     Outbox outbox{store, {.fence = Fence::none}};
///     EventBus bus{store, {}, EventBus::Feed::deliver};
///     auto mails = bus.on<OrderShipped>([&](const Recorded<OrderShipped>& e) { mail(e->carrier);
///     });
///     BusPublisher publisher{bus};
///     Relay relay{outbox, publisher};
///
/// Threads: listeners are called on the relay's thread, outside of any transaction. The same thread
/// renews the relay's leases: if a listener takes longer than a lease, another process may call it
/// for the same event.
class STELA_OUTBOX_EXPORT BusPublisher final : public Publisher {
 public:
  /// `bus` must outlive it. Use `EventBus::Feed::deliver`: with `commits`, each event would be
  /// delivered twice.
  explicit BusPublisher(EventBus& bus) noexcept : bus_{bus} {}

  using Publisher::can;
  /// Only `none`: listeners of several processes keep no common order.
  bool can(Fence fence) const noexcept override { return fence == Fence::none; }
  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override { sink_ = nullptr; }
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void probe(std::uint64_t request) override;
  void flush() override {}

 private:
  EventBus& bus_;
  AnswerSink* sink_ = nullptr;
  std::uint64_t session_ = 0;
  std::uint64_t delivered_ = 0;
};

}  // namespace stela
