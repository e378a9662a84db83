#include <stela/outbox/relay.hpp>

#include <array>
#include <condition_variable>
#include <mutex>

namespace stela {

Relay::Relay(Outbox& outbox, Publisher& publisher, const RelayOptions& options)
    : outbox_{outbox}, publisher_{publisher}, options_{options} {}

Relay::Tick Relay::tick() {
  Tick tick;
  for (const int partition : outbox_.partitions()) relay_partition(partition, tick);
  return tick;
}

void Relay::relay_partition(int partition, Tick& tick) {
  const auto sequences = outbox_.next(partition, options_.batch_size);
  GlobalSequence through;
  try {
    for (const StoredEvent& event : outbox_.store().read_at(sequences)) {
      publisher_.publish(event);
      through = event.sequence;
      ++tick.published;
    }
  } catch (const std::exception& e) {
    ++tick.failed;
    const std::array fields{LogEntry::Field{"problem", e.what()}};
    outbox_.store().conventions().log->write({.level = LogLevel::warning,
                                              .name = "relay.publish_failed",
                                              .message = "an event wasn't published; its "
                                                         "partition waits",
                                              .fields = fields});
  }
  if (through.value() > 0) outbox_.mark_published(partition, through);
}

void Relay::run(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  bool committed = false;
  const Subscription commits = outbox_.store().on_commit([&](const CommitNotice&) {
    {
      const std::lock_guard lock{mutex};
      committed = true;
    }
    changed.notify_one();
  });
  while (!stop.stop_requested()) {
    const Tick done = tick();
    if (done.published > 0 && done.failed == 0) continue;
    std::unique_lock lock{mutex};
    changed.wait_for(lock, stop, options_.idle_backoff,
                     [&] { return committed && done.failed == 0; });
    committed = false;
  }
}

}  // namespace stela
