// A broker that answers as newer servers do, or worse: on a server without JetStream, a client
// takes the requests.
#pragma once

#include "support/nats_server.hpp"

#include <nats/nats.h>

#include <atomic>
#include <mutex>
#include <string>

namespace stela::test {

/// One stream, SHOP, and whatever consumers are made of it.
/// Threads: any.
class FakeJetStream {
 public:
  FakeJetStream();
  ~FakeJetStream();
  FakeJetStream(const FakeJetStream&) = delete;
  FakeJetStream& operator=(const FakeJetStream&) = delete;

  const std::string& url() const noexcept { return server_.url(); }

  /// What is said of the stream.
  void tell_of_stream(const std::string& info);
  /// Nobody responds to requests for messages any more.
  void delete_consumer();
  /// How requests for messages are answered from now on: with this status, at once.
  void refuse(const std::string& status, const std::string& description);
  int requests() const noexcept { return requests_; }

 private:
  static void answer(natsConnection* connection, natsSubscription*, natsMsg* message, void* self);
  std::string info_of(const std::string& subject);
  void give_status(natsConnection* connection, const char* reply);

  NatsServer server_{"jetstream: false"};
  natsConnection* connection_ = nullptr;
  natsSubscription* streams_ = nullptr;
  natsSubscription* consumers_ = nullptr;
  natsSubscription* messages_ = nullptr;
  natsSubscription* creations_ = nullptr;
  std::atomic<int> requests_{0};
  std::mutex mutex_;
  // Guarded by mutex_.
  std::string stream_;
  const std::string made_ =
      R"({"stream_name":"SHOP","name":"reader","config":{"name":"reader","deliver_policy":"all",)"
      R"("ack_policy":"none","replay_policy":"instant"},"num_pending":0})";
  std::string status_;
  std::string description_;
};

}  // namespace stela::test
