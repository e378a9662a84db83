// Publishes to NATS JetStream.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/nats/connection.hpp>
#include <stela/nats/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace stela::nats {

/// How a stream is made that isn't there. One that is there must be safe for the fence, but may
/// have other limits.
struct StreamOptions {
  int replicas = 1;
  /// 0: no limit. A stream that is full takes no more until there is space.
  std::int64_t max_bytes = 0;
  std::int64_t max_messages = 0;
  /// 0: messages are kept for ever.
  std::chrono::seconds max_age{0};
  std::chrono::seconds duplicate_window{120};
};

struct PublisherOptions {
  /// "nats://HOST:PORT", or tls://; several servers of one cluster:
  /// "nats://one:4222,nats://two:4222".
  std::string url = "nats://127.0.0.1:4222";
  /// The first token of all subjects; of a partition of several "{prefix}_p00".
  std::string prefix = "stela";
  /// The JetStream stream; of a partition of several "{stream}_p00".
  std::string stream = "STELA";
  /// What follows the prefix, in modes `stream` and `none`: text, dots and {event}, {category},
  /// {stream}, {partition}, {header:NAME}. In mode `subject` it is always the partition.
  std::string subject = "{event}";
  /// How the outbox that is relayed is fenced.
  Fence fence = Fence::stream;
  /// Make the streams if they aren't there: file storage, limits retention, new messages refused
  /// when one is full.
  bool ensure_stream = false;
  StreamOptions stream_options = {};

  JetStreamApi api = {};
  Credentials credentials = {};
  Tls tls = {};
  /// For each server: one that hasn't taken us by then, and is silent for so long, is given up. At
  /// most twice the time, whatever it does.
  std::chrono::milliseconds connect_timeout{2'000};
  /// After this the client gives up on an answer.
  std::chrono::milliseconds publish_timeout{5'000};

  /// The payloads of a store that keeps portable binary are published as they are only if it is
  /// said here.
  Codec codec = Codec::json;
  /// ce-source, a URI reference; empty: "urn:uuid:" and the id of the store.
  std::string source = {};
  /// The outbox's own: ce-partitionkey says what it orders by.
  const Partitioner* partitioner = &by_stream();
};

/// UsageError if the options contradict each other, a name can't stand in a subject, or a file is
/// missing.
STELA_NATS_EXPORT void check(const PublisherOptions& options);

/// The stored bytes as the body, the event's id as Nats-Msg-Id, what is known of the event as
/// CloudEvents headers: docs/reference/wire-format.md.
///
/// A connection that breaks is not mended: it ends the session, and the relay opens another and
/// looks what stands in the stream. Nothing is buffered while there is no connection: the database
/// is the buffer.
/// A forked child is refused the publisher of its parent: UsageError.
/// Threads: one at a time. It has one of its own, on which it connects and closes.
class STELA_NATS_EXPORT Publisher final : public stela::Publisher {
 public:
  /// UsageError as `check`.
  explicit Publisher(const PublisherOptions& options);
  ~Publisher() override;

  bool can(Fence fence) const noexcept override;
  bool can(Codec codec) const noexcept override;
  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override;
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void probe(std::uint64_t request) override;
  void flush() override;

 private:
  class Worker;

  const PublisherOptions options_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace stela::nats
