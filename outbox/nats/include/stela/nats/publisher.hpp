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

/// How a missing stream is created. An existing one must be safe for the fence, but may have other
/// limits.
struct StreamOptions {
  int replicas = 1;
  /// 0: no limit. A full stream accepts no messages until there is space.
  std::int64_t max_bytes = 0;
  std::int64_t max_messages = 0;
  /// 0: messages are kept for ever.
  std::chrono::seconds max_age{0};
  std::chrono::seconds duplicate_window{120};
};

struct PublisherOptions {
  /// "nats://HOST:PORT" or "tls://HOST:PORT". For several servers of one cluster:
  /// "nats://one:4222,nats://two:4222".
  std::string url = "nats://127.0.0.1:4222";
  /// The first token of all subjects. With several partitions: "{prefix}_p00".
  std::string prefix = "stela";
  /// The JetStream stream. With several partitions: "{stream}_p00".
  std::string stream = "STELA";
  /// The rest of the subject, after the prefix, in modes `stream` and `none`: text, dots and
  /// {event}, {category}, {stream}, {partition}, {header:NAME}. In mode `subject` it is always the
  /// partition.
  std::string subject = "{event}";
  /// The tenant whose messages these are, which they name: ce-tenant. Subjects then begin with
  /// "{prefix}.{tenant}", and the stream is "{stream}_{tenant}"; in mode `subject` all tenants
  /// share one stream.
  std::string tenant = {};
  /// The fence of the outbox.
  Fence fence = Fence::stream;
  /// Create missing streams, with file storage and limits retention. They refuse new messages when
  /// full.
  bool ensure_stream = false;
  StreamOptions stream_options = {};

  JetStreamApi api = {};
  Credentials credentials = {};
  Tls tls = {};
  /// Per server: an attempt is given up once it has lasted this long and the server has been silent
  /// for this long; after twice the time in any case.
  std::chrono::milliseconds connect_timeout{2'000};
  /// How long the client waits for an answer.
  std::chrono::milliseconds publish_timeout{5'000};

  /// Set it to `portable_binary` to publish the payloads of a store with that codec, as they are
  /// stored.
  Codec codec = Codec::json;
  /// ce-source, a URI reference. Empty: "urn:uuid:" and the id of the store.
  std::string source = {};
  /// The outbox's partitioner. ce-partitionkey is its key.
  const Partitioner* partitioner = &by_stream();
};

/// UsageError if the options contradict each other, a name isn't valid in a subject, or a file is
/// missing.
STELA_NATS_EXPORT void check(const PublisherOptions& options);

/// Publishes the stored bytes as the body, the event's id as Nats-Msg-Id, and the event's
/// properties as CloudEvents headers: docs/reference/wire-format.md.
///
/// A broken connection ends the session. The relay opens another one and reads back what the stream
/// contains. Nothing is buffered without a connection: the database is the buffer. A forked child
/// can't use its parent's publisher: UsageError. Threads: one at a time. It has a thread of its
/// own, which connects and closes.
class STELA_NATS_EXPORT Publisher final : public stela::Publisher {
 public:
  /// UsageError as for `check`.
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
