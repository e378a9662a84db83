// Publishes events to a NATS JetStream stream.
#pragma once

#include <stela/nats/export.hpp>
#include <stela/outbox/relay.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace stela::nats {

struct PublisherOptions {
  std::string url = "nats://127.0.0.1:4222";
  /// The first token of every subject: "{prefix}.{event}".
  std::string prefix = "stela";
  /// The JetStream stream that takes "{prefix}.>".
  std::string stream = "STELA";
  /// Make the stream if it isn't there: file storage, limits retention, new messages refused when
  /// it is full.
  bool ensure_stream = false;
  std::chrono::milliseconds publish_timeout{5000};
};

/// The stored bytes as the body, the event's id as Nats-Msg-Id.
/// Threads: one at a time.
class STELA_NATS_EXPORT Publisher final : public stela::Publisher {
 public:
  /// BrokerFailed if the server can't be reached, or the stream can't be made.
  explicit Publisher(const PublisherOptions& options);
  ~Publisher() override;

  void publish(const StoredEvent& event) override;

 private:
  void ensure_stream();

  struct Session;
  std::unique_ptr<Session> session_;
  const PublisherOptions options_;
};

}  // namespace stela::nats
