// The contents of a message broker, and how they compare with what the outbox counts as published.
#pragma once

#include <stela/framework/detail/function_ref.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stela {

/// Reads a broker's messages from first to last, while relays publish to it. Threads: one at a
/// time.
class STELA_OUTBOX_EXPORT BrokerContents {
 public:
  using Take = FunctionRef<void(const FoundMessage&)>;

  virtual ~BrokerContents() = default;

  /// Calls `take` for every message that the partition's stream holds now, in order. With the fence
  /// `none` there is one stream for all partitions, and it reads that one. Returns true if the
  /// broker has dropped older messages because of its own limits. BrokerFailed if it can't read to
  /// the end.
  virtual bool read(PartitionId partition, Take take) = 0;
};

/// An event in a broker's message. A view that is valid during the call.
struct BrokerEvent {
  std::string_view broker_stream = {};
  std::uint64_t broker_sequence = 0;
  /// When the broker stored it.
  Timestamp stored_at = {};
  std::string_view store_id = {};
  std::int64_t redelivery = 0;
  Codec codec = Codec::json;
  /// Null if no relay can have published the message; `problem` then says why.
  const StoredEvent* event = nullptr;
  std::string_view problem = {};
};

/// A broker whose messages can also be read with their events.
class STELA_OUTBOX_EXPORT BrokerArchive : public BrokerContents {
 public:
  using TakeEvent = FunctionRef<void(const BrokerEvent&)>;

  /// Calls `take` for the messages at these ascending places in the partition's stream, and skips
  /// missing ones. BrokerFailed as for `read`.
  virtual void fetch(PartitionId partition, std::span<const std::uint64_t> places,
                     TakeEvent take) = 0;
};

struct Compared {
  /// Events that the outbox counts as published, and messages of this store at the broker.
  std::int64_t checked = 0;
  std::int64_t found = 0;
  /// Events missing at the broker, which are sent again, and the first hundred of them.
  std::int64_t missing = 0;
  std::vector<GlobalSequence> examples = {};
  /// Events missing because the broker drops old messages, which is no problem.
  std::int64_t dropped = 0;
  /// Messages of this store whose event the store doesn't have. It may have been restored from a
  /// backup.
  std::int64_t unknown = 0;
  /// Messages of other writers.
  std::int64_t foreign = 0;
};

}  // namespace stela
