// What stands at a message broker, and how that compares with what the outbox counts as published.
#pragma once

#include <stela/framework/function_ref.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <vector>

namespace stela {

/// A broker that is read from one end to the other, beside the relays that publish to it.
/// Threads: one at a time.
class STELA_OUTBOX_EXPORT BrokerContents {
 public:
  using Take = FunctionRef<void(const FoundMessage&)>;

  virtual ~BrokerContents() = default;

  /// Calls `take` for everything that the partition's stream holds now, in its order; with the
  /// fence `none` for what the one stream holds, whatever the partition. True if the broker,
  /// by limits of its own, has dropped what was before. BrokerFailed if it can't be read to its
  /// end.
  virtual bool read(PartitionId partition, Take take) = 0;
};

struct Compared {
  /// Events that the outbox counts as published, and messages of this store at the broker.
  std::int64_t checked = 0;
  std::int64_t found = 0;
  /// Events that aren't there and are sent again; the first hundred of them.
  std::int64_t missing = 0;
  std::vector<GlobalSequence> examples = {};
  /// Events that aren't there as the broker drops what is old: nothing is wrong with them.
  std::int64_t dropped = 0;
  /// Messages of this store whose event it doesn't have: it was restored from a backup, say.
  std::int64_t unknown = 0;
  /// Messages of others.
  std::int64_t foreign = 0;
};

}  // namespace stela
