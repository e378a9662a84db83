// Stands between clients and JetStream: a client of its own takes the requests to the API, and
// passes them on to a real server.
#pragma once

#include <nats/nats.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace stela::test {

/// Threads: any.
class Middleman {
 public:
  /// As JetStreamApi has it.
  static constexpr const char* prefix = "EARLY.API";

  explicit Middleman(const std::string& url);
  ~Middleman();
  Middleman(const Middleman&) = delete;
  Middleman& operator=(const Middleman&) = delete;

  /// As newer servers do where a consumer has several copies, the next requests for messages are
  /// ended before they are passed on: so many, with what status, and how many messages of each the
  /// server won't send.
  void say(const std::string& status, const std::string& description, int unsent, int times);
  /// Requests to read messages are kept back until so many are there.
  void gather_reads(std::size_t count);
  /// The requests for messages so far.
  std::vector<std::string> requests() const;

 private:
  struct Request {
    std::string subject;
    std::string reply;
    std::string data;
  };
  static void take(natsConnection* connection, natsSubscription*, natsMsg* message, void* self);
  static void pass_on(natsConnection* connection, const Request& request);
  void take(natsConnection* connection, const Request& request);
  void say_status(natsConnection* connection, const std::string& reply);

  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::string> requests_;
  std::vector<Request> reads_;
  std::size_t reads_wanted_ = 0;
  std::string status_;
  std::string description_;
  int unsent_ = 0;
  int times_ = 0;
};

}  // namespace stela::test
