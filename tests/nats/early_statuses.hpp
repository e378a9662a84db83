// A broker that ends a request for messages before it sends them, as newer servers do where a
// consumer has several copies: a client takes the requests for the API, says the status, and passes
// them on to a real server.
#pragma once

#include <nats/nats.h>

#include <mutex>
#include <string>
#include <vector>

namespace stela::test {

/// Threads: any.
class EarlyStatuses {
 public:
  /// As JetStreamApi has it.
  static constexpr const char* prefix = "EARLY.API";

  explicit EarlyStatuses(const std::string& url);
  ~EarlyStatuses();
  EarlyStatuses(const EarlyStatuses&) = delete;
  EarlyStatuses& operator=(const EarlyStatuses&) = delete;

  /// What is said of the next requests for messages, one after the other, and how many of each the
  /// server won't send.
  void say(const std::string& status, const std::string& description, int unsent, int times);
  /// The requests for messages so far.
  std::vector<std::string> requests() const;

 private:
  static void pass_on(natsConnection* connection, natsSubscription*, natsMsg* message, void* self);
  void say_status(natsConnection* connection, const char* reply);

  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::string> requests_;
  std::string status_;
  std::string description_;
  int unsent_ = 0;
  int times_ = 0;
};

}  // namespace stela::test
