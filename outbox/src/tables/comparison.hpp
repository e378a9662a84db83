// Compares what the outbox counts as published with the broker's contents.
#pragma once

#include "tables/known_messages.hpp"
#include "tables/stored_operations.hpp"
#include "tables/upkeep.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/outbox/operations.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::outbox {

struct CompareRequest {
  GlobalSequence from{1};
  Mode mode = Mode::carry_out;
  std::string_view who = {};
};

/// Reads first the events that count as published, then the broker's, at one bit per event each,
/// and then the missing ones. Events published meanwhile aren't judged.
/// Threads: one at a time.
class Comparison {
 public:
  Comparison(Store& store, const Partitioner& partitioner, const OnProgress& progress);

  void read(BrokerContents& broker, GlobalSequence from);
  Compared carry_out(StoredOperations& operations, const CompareRequest& request);

 private:
  /// The first event and the first place that a stream has.
  struct Kept {
    std::optional<std::int64_t> first = {};
    std::uint64_t first_place = 0;
  };

  void read(BrokerContents& broker, PartitionId partition);
  void recognise(std::vector<FoundMessage>& page, Kept& kept);
  void note_published(std::int64_t from, std::int64_t end);
  void report(std::string_view stage, std::int64_t done, std::int64_t total) const;
  bool may_be_dropped(const OutboxMessage& message) const;
  /// Examines the next publishable events, and returns those missing at the broker.
  std::vector<OutboxMessage> look(std::int64_t& next, std::int64_t end, bool& more);
  std::vector<GlobalSequence> missing_of(const std::vector<OutboxMessage>& absent);

  Store& store_;
  const Partitioner& partitioner_;
  const OnProgress& progress_;
  KnownMessages known_;
  const bool is_shared_;
  std::vector<bool> published_;
  std::vector<bool> at_broker_;
  /// Imported events that the broker has dropped.
  std::vector<bool> dropped_;
  /// For streams that have dropped old messages: the first event kept, if there is one.
  std::map<PartitionId, std::optional<std::int64_t>> first_kept_;
  /// The first message of each stream that was read, if there is one.
  std::map<PartitionId, std::optional<std::int64_t>> begins_;
  Compared compared_;
};

}  // namespace stela::outbox
