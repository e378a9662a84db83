// Finds the state of a publishable event.
#pragma once

#include "database/connection.hpp"
#include "tables/generations.hpp"
#include "tables/placement.hpp"

#include <stela/outbox/messages.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace stela::outbox {

namespace sql {
class waiting_row;
class set_aside_row;
}  // namespace sql

struct Located {
  OutboxMessage message = {};
  /// The number of its event stream.
  std::int64_t stream = 0;
  /// It should have a state, but has none.
  bool is_missing = false;
};

/// Reads a parked or discarded message, according to `state`.
OutboxMessage read_set_aside(const sql::set_aside_row& row, MessageState state);

/// Threads: one at a time, for one transaction.
class Locator {
 public:
  Locator(database::Connection& connection, Placement& placement, Timestamp now);

  /// Call it before looking up many events of a range in sequence: events published long ago then
  /// need fewer round trips to a server.
  void expect(std::int64_t first, std::int64_t last);

  /// The same for the events of these messages.
  void expect_events(std::span<OutboxMessage> messages);

  /// Unset if the event isn't publishable and has no message.
  std::optional<Located> find(GlobalSequence sequence);

  /// Reads a pending message or a redelivery.
  OutboxMessage read_waiting(const sql::waiting_row& row);
  /// Adds what is known of the messages' events.
  void complete(std::span<OutboxMessage> messages);
  /// Adds only type and time, which suffice to filter out most messages.
  void add_types(std::span<OutboxMessage> messages);
  /// The last sequence that the partition's owner has in flight; 0 if none.
  std::int64_t flight_through(PartitionId partition) {
    return progress_of(partition).flight_through;
  }

 private:
  struct Progress {
    /// Nothing after it is published.
    std::int64_t through = 0;
    /// The end of what the owner has in flight.
    std::int64_t flight_through = 0;
    /// The last batch looked up; none at first.
    std::int64_t batch_first = 1;
    std::int64_t batch_last = 0;
    Timestamp batch_at = {};
    std::int64_t broker_first = 0;
    std::int64_t broker_last = 0;
    /// The batch has one message for each event, and no others between.
    bool is_dense = false;
  };

  struct EventFacts {
    std::int64_t stream = 0;
    bool publishes = false;
    OutboxMessage of = {};
  };

  EventFacts facts_of(std::int64_t sequence);
  std::optional<OutboxMessage> find_waiting(GlobalSequence sequence);
  std::optional<OutboxMessage> find_set_aside(GlobalSequence sequence);
  std::optional<OutboxMessage> find_redelivery(GlobalSequence sequence, std::int64_t stream);
  void find_published(Located& located);
  Progress& progress_of(PartitionId partition);
  /// False if the event was expected and has neither a message nor its own batch.
  bool may_be_set_apart(std::int64_t sequence) const noexcept;

  database::Connection& connection_;
  Placement& placement_;
  const Timestamp now_;
  const std::vector<Generation> generations_;
  const bool knows_partitioner_;
  bool is_fenced_ = false;
  std::vector<std::pair<PartitionId, Progress>> progress_;
  /// The expected range, and the exceptions in it.
  std::int64_t expected_first_ = 1;
  std::int64_t expected_last_ = 0;
  std::set<std::int64_t> set_apart_;
  std::map<std::int64_t, EventFacts> facts_;
};

}  // namespace stela::outbox
