// One connection of a consumer: a durable pull consumer at the broker.
#pragma once

#include "delivery.hpp"
#include "handles.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace stela::nats {

/// Makes the durable consumer if it isn't there. Asks for messages itself: natsSubscription_Fetch
/// of nats.c 3.4 writes past the end of its list when more than half of a batch was there already.
/// A connection that breaks is not mended: what was fetched and not answered comes again. Threads:
/// one at a time.
class Pull {
 public:
  /// BrokerFailed if the broker can't be reached or has no such stream; UsageError if the durable
  /// consumer is there and is another than the one that is wanted.
  explicit Pull(const ConsumerOptions& options);
  ~Pull();

  /// Waits for the first message at most; then what else is there. Empty if nothing came. Behind a
  /// full batch it asks for the next one at once, to come while this one is handled, unless those
  /// before took so long that the broker would lose patience.
  std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait);
  /// Puts back what was asked for and not fetched.
  void hand_back();

  void ack(const Delivery& delivery);
  /// It comes again after `delay`; up to a second earlier if the server was started again
  /// meanwhile, which keeps such times to the second.
  void put_back(const Delivery& delivery, std::chrono::milliseconds delay);
  /// It is being worked on: the broker begins to count anew.
  void in_progress(const Delivery& delivery);
  /// Returns when the broker has the answers.
  void flush();

  /// Nothing that was published is missing at the front of what this consumer gets.
  bool has_whole_history() const noexcept { return has_whole_history_; }
  /// Of the consumer at the broker, whatever the options say.
  std::chrono::milliseconds ack_wait() const noexcept { return ack_wait_; }
  /// See ConsumerOptions.
  std::chrono::milliseconds gap_patience() const noexcept {
    return options_.gap_patience.value_or(2 * ack_wait_);
  }

 private:
  void find_stream();
  void make_durable();
  void take_ack_wait(std::chrono::nanoseconds at_the_broker);
  void subscribe();
  void ask(int limit, std::chrono::milliseconds wait);
  bool is_anything_here();
  MessageHandle next(std::chrono::milliseconds wait);
  void take_status(natsMsg* message);
  void answer(const Delivery& delivery, const std::string& text);

  const ConsumerOptions& options_;
  ConnectionHandle connection_;
  ContextHandle context_;
  /// To what is asked for; null until then.
  SubscriptionHandle subscription_;
  std::string inbox_;
  /// How many messages the broker still owes to the last request, and until when.
  int owed_ = 0;
  std::chrono::steady_clock::time_point owed_until_{};
  std::chrono::steady_clock::time_point fetched_{};
  bool has_whole_history_ = false;
  std::chrono::milliseconds ack_wait_;
};

}  // namespace stela::nats
