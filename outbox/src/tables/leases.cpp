#include "tables/relay_store.hpp"

#include "database/database.hpp"
#include "database/journal.hpp"
#include "follow/lease.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/relay.hpp"
#include "tables/advance.hpp"
#include "tables/generations.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::outbox {

using database::Connection;
using database::Sync;
using relay::Lease;
using relay::Standing;

namespace {

/// Describes impossible values in a row.
std::string problem_of(const sql::standing::Row& row) {
  const std::pair<const char*, std::int64_t> never_negative[] = {
      {"epoch", row.epoch()},
      {"published_through", row.published_through()},
      {"broker_sequence", row.broker_sequence()},
      {"flight_count", row.flight_count()}};
  for (const auto& [name, value] : never_negative) {
    if (value >= 0) continue;
    return "its row in outbox_partitions has the " + std::string{name} + ' ' +
           std::to_string(value);
  }
  return {};
}

Standing standing_of(const sql::standing::Row& row, Timestamp now) {
  return {.epoch = row.epoch(),
          .published_through = GlobalSequence{row.published_through()},
          .broker_sequence = static_cast<std::uint64_t>(row.broker_sequence()),
          .broker_id = std::string{row.broker_id()},
          .flight_count = row.flight_count(),
          .flight_through = GlobalSequence{row.flight_through()},
          .attempts = static_cast<int>(row.attempts()),
          .backoff_left = std::max(row.next_attempt_at() - now, std::chrono::microseconds{0}),
          .adopted = row.adopted()};
}

/// A partition's owner, and how long it holds the lease.
struct Holding {
  bool has_owner = false;
  std::string owner = {};
  std::int64_t epoch = 0;
  follow::StoredLease lease = {};
  /// The problem with the row.
  std::string problem = {};
};

/// False if the partition doesn't exist.
bool read_holding(Connection& connection, PartitionId partition, Holding& holding) {
  auto row = connection.rows(sql::standing{.partition = partition.number});
  if (!row.step()) return false;
  holding = {.has_owner = row.owner().has_value(),
             .owner = std::string{row.owner().value_or("")},
             .epoch = row.epoch(),
             .lease = {row.lease_until(), std::chrono::microseconds{row.lease_ttl()}},
             .problem = problem_of(row)};
  return true;
}

/// Zero, which is always past, if there is no wait.
Timestamp end_of(std::chrono::microseconds wait, Timestamp now) {
  return wait.count() > 0 ? now + wait : Timestamp{};
}

void note_stop(Connection& connection, Timestamp at, PartitionId partition, StopReason reason,
               std::string_view detail) {
  std::string why{to_string(reason)};
  why.append(": ").append(detail);
  database::note(
      connection, at,
      {.part = "outbox", .subject = partition.label(), .what = "stopped", .detail = why});
}

/// Stops the partition of an impossible row.
void stop_damaged(Connection& connection, PartitionId partition, const std::string& problem,
                  Timestamp at) {
  const std::string detail =
      problem + "; restore a backup, or repair the row and adopt the partition";
  if (connection.run(sql::stop_shared{.partition = partition.number,
                                      .reason = to_string(StopReason::damaged),
                                      .detail = detail,
                                      .now = at}) == 1) {
    note_stop(connection, at, partition, StopReason::damaged, detail);
  }
}

/// Thrown to roll back work under a lost lease.
struct Fenced {};

void give_back(Connection& connection, const Lease& lease) {
  connection.run(sql::release{
      .partition = lease.partition.number, .owner = lease.owner, .epoch = lease.epoch});
}

}  // namespace

// --- leases

std::optional<Standing> RelayStore::acquire(PartitionId partition, std::string_view worker,
                                            std::chrono::microseconds ttl) {
  return take(partition, worker, ttl, "");
}

std::optional<Standing> RelayStore::acquire_lost(PartitionId partition, std::string_view worker,
                                                 std::chrono::microseconds ttl) {
  return take(partition, worker, ttl, to_string(StopReason::broker_lost));
}

std::optional<Standing> RelayStore::take(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl, std::string_view stopped) {
  std::optional<Standing> standing;
  const Timestamp at = now();
  store_.database().write_along(
      [&](Connection& connection) {
        Holding before;
        if (!read_holding(connection, partition, before)) return;
        if (!before.problem.empty()) {
          return stop_damaged(connection, partition, before.problem, at);
        }
        if (before.has_owner && leasing_ && !follow::is_over(before.lease, at)) return;
        const bool acquired = connection.run(sql::acquire{.partition = partition.number,
                                                          .found_epoch = before.epoch,
                                                          .found_until = before.lease.until,
                                                          .worker = worker,
                                                          .until = at + ttl,
                                                          .ttl = ttl.count(),
                                                          .stopped = stopped}) == 1;
        if (!acquired) return;
        auto now_held = connection.rows(sql::standing{.partition = partition.number});
        now_held.step();
        standing = standing_of(now_held, at);
        standing->run = connection.run();
        standing->unclean = before.has_owner;
        if (before.has_owner && before.owner != worker) {
          database::note(connection, at,
                         database::Takeover{.part = "outbox",
                                            .subject = partition.label(),
                                            .from = before.owner,
                                            .to = worker});
        }
      },
      Sync::if_shared);
  return standing;
}

bool RelayStore::renew(const Lease& lease, std::chrono::microseconds ttl) {
  const Timestamp at = now();
  return write(lease, false, [&](Connection& connection) {
    return connection.run(sql::renew{.partition = lease.partition.number,
                                     .owner = lease.owner,
                                     .epoch = lease.epoch,
                                     .now = at,
                                     .until = at + ttl}) == 1;
  });
}

void RelayStore::release(const Lease& lease) {
  store_.database().write_along([&](Connection& connection) { give_back(connection, lease); },
                                Sync::none);
}

bool RelayStore::write(const relay::Lease& lease, bool durable,
                       const std::function<bool(Connection&)>& work) {
  bool is_held = false;
  try {
    store_.database().write_along(
        [&](Connection& connection) {
          is_held = connection.run() == lease.run;
          // Release it, so that it can be taken again at once and compared with the broker.
          if (!is_held) return give_back(connection, lease);
          if (!work(connection)) throw Fenced{};
        },
        // A worker that outlives its server continues from its records.
        Sync::if_shared);
  } catch (const Fenced&) {
    return false;
  }
  if (!is_held) return false;
  // Under full durability the events were synced when they were appended, and marks needn't be.
  // Under relaxed durability the log is synced before anything is sent, while others commit on.
  if (durable && store_.database().is_relaxed()) store_.database().sync();
  return true;
}

// --- messages

std::unique_ptr<relay::PendingBatch> RelayStore::next(PartitionId partition,
                                                      const relay::Cursor& cursor,
                                                      const relay::BatchLimit& limit) {
  auto batch = make_batch();
  store_.database().read_snapshot([&](Connection& connection) {
    if (std::exchange(run_, connection.run()) != connection.run()) open_generation_ = 0;
    const std::vector<Generation> generations = all_generations(connection);
    const std::int64_t end = open_end(connection, generations, open_generation_);
    batch->read(connection, partition, cursor, end, limit);
    batch->name_generations(generations);
  });
  return batch;
}

bool RelayStore::advance(const Lease& lease, const relay::Advance& advance, bool durable) {
  const Timestamp at = now();
  return write(lease, durable,
               [&](Connection& connection) { return apply(connection, lease, advance, at); });
}

bool RelayStore::note(const Lease& lease, const relay::Trouble& trouble) {
  const Timestamp at = now();
  std::optional<std::string_view> failure_class;
  if (trouble.failure) failure_class = to_string(*trouble.failure);
  return write(lease, false, [&](Connection& connection) {
    const bool is_ours =
        connection.run(sql::note_partition{.partition = lease.partition.number,
                                           .owner = lease.owner,
                                           .epoch = lease.epoch,
                                           .attempts = trouble.attempts,
                                           .next_attempt_at = end_of(trouble.backoff, at),
                                           .error = database::or_null(trouble.error),
                                           .failure_class = failure_class,
                                           .now = at}) == 1;
    if (!is_ours) return false;
    if (!trouble.message) return true;
    if (trouble.message->redelivery > 0) {
      connection.run(sql::note_redelivery{.redelivery = trouble.message->redelivery,
                                          .attempts = trouble.message_attempts,
                                          .error = trouble.error});
      return true;
    }
    connection.run(sql::note_message{.partition = lease.partition.number,
                                     .sequence = trouble.message->sequence.value(),
                                     .attempts = trouble.message_attempts,
                                     .error = trouble.error});
    return true;
  });
}

bool RelayStore::stop(const Lease& lease, StopReason reason, std::string_view detail) {
  const Timestamp at = now();
  return write(lease, false, [&](Connection& connection) {
    if (connection.run(sql::stop{.partition = lease.partition.number,
                                 .owner = lease.owner,
                                 .epoch = lease.epoch,
                                 .reason = to_string(reason),
                                 .detail = detail,
                                 .now = at}) != 1) {
      return false;
    }
    note_stop(connection, at, lease.partition, reason, detail);
    return true;
  });
}

bool RelayStore::continue_lost(const Lease& lease) {
  const Timestamp at = now();
  return write(lease, false, [&](Connection& connection) {
    if (connection.run(sql::continue_lost{
            .partition = lease.partition.number, .owner = lease.owner, .epoch = lease.epoch}) !=
        1) {
      return false;
    }
    database::note(connection, at,
                   database::StateChange{.part = "outbox",
                                         .subject = lease.partition.label(),
                                         .what = "resumed",
                                         .detail = "the broker has its messages again"});
    return true;
  });
}

}  // namespace stela::outbox
