// Publishes to NATS JetStream.
#pragma once

#include <stela/nats/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace stela::nats {

struct PublisherOptions {
  std::string url = "nats://127.0.0.1:4222";
  /// Subjects are "{prefix}.{event}"; of a partition of several "{prefix}_p00.{event}".
  std::string prefix = "stela";
  /// The JetStream stream; of a partition of several "{stream}_p00".
  std::string stream = "STELA";
  /// How the outbox that is relayed is fenced.
  Fence fence = Fence::stream;
  /// Make the streams if they aren't there: file storage, limits retention, new messages refused
  /// when one is full.
  bool ensure_stream = false;
  std::chrono::milliseconds connect_timeout{2'000};
  /// After this the client gives up on an answer.
  std::chrono::milliseconds publish_timeout{5'000};
};

/// The stored bytes as the body, the event's id as Nats-Msg-Id.
///
/// A connection that breaks is not mended: it ends the session, and the relay opens another and
/// looks what stands in the stream. Nothing is buffered while there is no connection: the database
/// is the buffer.
/// Threads: one at a time. It has one of its own, for what would block.
class STELA_NATS_EXPORT Publisher final : public stela::Publisher {
 public:
  explicit Publisher(const PublisherOptions& options);
  ~Publisher() override;

  bool can(Fence fence) const noexcept override;
  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override;
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void flush() override;

 private:
  class Session;
  class Worker;

  const PublisherOptions options_;
  std::unique_ptr<Worker> worker_;
  std::shared_ptr<Session> session_;
};

}  // namespace stela::nats
