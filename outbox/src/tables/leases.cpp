// How the relay takes, renews and releases leases, and writes under one.
#include "tables/relay_store.hpp"

#include "database/database.hpp"
#include "database/journal.hpp"
#include "follow/lease.hpp"
#include "outbox_sql/relay.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

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

}  // namespace stela::outbox
