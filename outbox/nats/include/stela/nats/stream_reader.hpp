// Reads what a publisher has put into JetStream.
#pragma once

#include <stela/nats/export.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox/broker_contents.hpp>

#include <memory>

namespace stela::nats {

/// Headers alone, by a consumer that the broker forgets soon; relays aren't disturbed. A stream
/// with several replicas is read message by message from its leader, as the others may lag.
/// Threads: one at a time.
class STELA_NATS_EXPORT StreamReader final : public BrokerContents {
 public:
  /// With the publisher's options: where the streams are, and how they are fenced. UsageError as
  /// `check`; BrokerFailed if the broker can't be reached.
  explicit StreamReader(const PublisherOptions& options);
  ~StreamReader() override;

  /// A missing stream is an empty one with `ensure_stream`, and BrokerFailed without. BrokerFailed,
  /// too, after a few tries if the stream has no leader, or if its leader changes meanwhile.
  bool read(PartitionId partition, Take take) override;
  /// Whether any stream that it has read existed.
  bool has_found_a_stream() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::nats
