// Publishes in this process: what an application has that needs no broker.
#pragma once

#include <stela/framework/event_bus.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>

namespace stela {

/// Hands events to the listeners of a bus, each at least once, those of a stream in order, also
/// after a crash: an event is marked published when every listener has returned. If one throws, all
/// of them are called again, after a while; after `max_attempts` the event is parked.
///
///     Outbox outbox{store, {.fence = Fence::none}};
///     EventBus bus{store, {}, EventBus::Feed::deliver};
///     auto mails = bus.on<OrderShipped>([&](const Recorded<OrderShipped>& e) { mail(e->carrier);
///     });
///     BusPublisher publisher{bus};
///     Relay relay{outbox, publisher};
///
/// Threads: listeners are called on the relay's thread, in no transaction. The relay renews its
/// leases on it too: a listener that takes longer than a lease may be called again elsewhere.
class STELA_OUTBOX_EXPORT BusPublisher final : public Publisher {
 public:
  /// `bus` must outlive it. One that is fed by commits would deliver each event twice.
  explicit BusPublisher(EventBus& bus) noexcept : bus_{bus} {}

  using Publisher::can;
  /// Listeners keep no order among processes: only `none`.
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
