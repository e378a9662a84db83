// Publishes what waits in the outbox.
#pragma once

#include <stela/outbox/export.hpp>
#include <stela/outbox/outbox.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

namespace stela {

/// Where messages go.
class STELA_OUTBOX_EXPORT Publisher {
 public:
  virtual ~Publisher() = default;
  /// Returns when the broker has acknowledged the event; throws if it hasn't.
  virtual void publish(const StoredEvent& event) = 0;
};

struct RelayOptions {
  int batch_size = 100;
  std::chrono::milliseconds idle_backoff{1000};
};

/// Relays the events of an outbox to a publisher, in order. One relay a database.
/// Threads: one at a time.
class STELA_OUTBOX_EXPORT Relay {
 public:
  struct Tick {
    std::int64_t published = 0;
    std::int64_t failed = 0;
  };

  /// Both must outlive the relay.
  Relay(Outbox& outbox, Publisher& publisher, const RelayOptions& options = {});

  /// One pass over all partitions. A partition stops at the first event that isn't acknowledged.
  Tick tick();
  /// Ticks until `stop` is requested; a commit of this process wakes it at once.
  void run(std::stop_token stop);

 private:
  void relay_partition(int partition, Tick& tick);

  Outbox& outbox_;
  Publisher& publisher_;
  const RelayOptions options_;
};

}  // namespace stela
