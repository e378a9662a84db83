// One connection of a consumer: a durable pull consumer at the broker.
#pragma once

#include "delivery.hpp"
#include "handles.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <vector>

namespace stela::nats {

/// Makes the durable consumer if it isn't there. A connection that breaks is not mended: what was
/// fetched and not answered comes again.
/// Threads: one at a time.
class Pull {
 public:
  /// BrokerFailed if the broker can't be reached or has no such stream; UsageError if the durable
  /// consumer is there and is another than the one that is wanted.
  explicit Pull(const ConsumerOptions& options);
  ~Pull();

  /// Waits for the first message at most; then what else is there. Empty if nothing came.
  std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait);

  void ack(const Delivery& delivery);
  void put_back(const Delivery& delivery, std::chrono::milliseconds delay);
  /// It is being worked on: the broker begins to count anew.
  void in_progress(const Delivery& delivery);
  /// Returns when the broker has the answers.
  void flush();

  /// Nothing that was published is missing at the front of what this consumer gets.
  bool has_whole_history() const noexcept { return has_whole_history_; }

 private:
  void find_stream();
  void make_durable();
  void subscribe();

  const ConsumerOptions& options_;
  ConnectionHandle connection_;
  ContextHandle context_;
  SubscriptionHandle subscription_;
  bool has_whole_history_ = false;
};

}  // namespace stela::nats
