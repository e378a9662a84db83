// Reads messages that a publisher has stored in JetStream.
#pragma once

#include <stela/nats/export.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox/detail/broker_contents.hpp>

#include <memory>

namespace stela::nats {

/// Reads only headers, except in `fetch`, through a short-lived consumer that doesn't disturb
/// relays. A stream with several replicas is read message by message from its leader, because the
/// others may lag. Threads: one at a time.
class STELA_NATS_EXPORT StreamReader final : public BrokerArchive {
 public:
  /// Takes the publisher's options: they name the streams and the fence. UsageError as for `check`;
  /// BrokerFailed if the broker can't be reached.
  explicit StreamReader(const PublisherOptions& options);
  ~StreamReader() override;

  /// A missing stream counts as empty with `ensure_stream`, and is BrokerFailed without it. Also
  /// BrokerFailed, after a few tries, if the stream has no leader or its leader changes meanwhile.
  bool read(PartitionId partition, Take take) override;
  /// From the server that leads the stream.
  void fetch(PartitionId partition, std::span<const std::uint64_t> places, TakeEvent take) override;
  /// Whether any of the streams that it was asked to read existed.
  bool has_found_a_stream() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::nats
