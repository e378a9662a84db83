#include "sqlite/relay_store.hpp"

#include "database/database.hpp"
#include "database/host.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/relay.hpp"
#include "outbox_sql/workers.hpp"
#include "sqlite/advance.hpp"
#include "sqlite/backoff.hpp"
#include "sqlite/generations.hpp"
#include "sqlite/worker_process.hpp"

#include <stela/framework/error.hpp>

#include <unistd.h>

#include <cstring>
#include <string_view>
#include <utility>

namespace stela::outbox {

using database::Connection;
using database::Sync;
using relay::Lease;
using relay::Overview;
using relay::Standing;

namespace {

/// Thrown to roll back what was begun under a lease that has passed.
struct Fenced {};

/// Workers are forgotten when they were silent for this many heartbeats.
constexpr std::int64_t forgotten_after = 20;

/// What can't be in a row, in words.
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

Standing read(const sql::standing::Row& row, Timestamp now) {
  return {.epoch = row.epoch(),
          .published_through = GlobalSequence{row.published_through()},
          .broker_sequence = static_cast<std::uint64_t>(row.broker_sequence()),
          .broker_id = std::string{row.broker_id()},
          .flight_count = row.flight_count(),
          .flight_through = GlobalSequence{row.flight_through()},
          .attempts = static_cast<int>(row.attempts()),
          .backoff_left = time_left(row.next_attempt_at(), now),
          .adopted = row.adopted()};
}

/// Nobody works on a row that can't be.
void stop_damaged(Connection& connection, PartitionId partition, const std::string& problem) {
  connection.run(sql::stop_shared{
      .partition = partition.number,
      .reason = "damaged",
      .detail = problem + "; restore a backup, or repair the row and adopt the partition"});
}

}  // namespace

RelayStore::RelayStore(stela::Store& store) : store_{store}, presence_{store.database().appear()} {
  memory_->reader = store.database().make_event_reader();
}

Timestamp RelayStore::now() const {
  return store_.database().now();
}

std::string RelayStore::store_id() const {
  return store_.id().to_string();
}

// --- workers

void RelayStore::require_free_name(Connection& connection, std::string_view worker, Timestamp at,
                                   std::chrono::microseconds ttl) const {
  auto row = connection.rows(sql::find_worker{.worker = worker});
  if (!row.step()) return;
  const WorkerIdentity other{.host = row.host(), .pid = row.pid(), .presence = row.presence()};
  const Timestamp until = row.heartbeat_until();
  if (other.presence == presence_->number() || until <= at || until > at + 2 * ttl) return;
  if (find_process(store_.database(), other) == WorkerProcess::ended) return;
  throw UsageError{"a worker named '" + std::string{worker} + "' is alive (host " +
                   std::string{other.host} + ", process " + std::to_string(other.pid) +
                   "); two of one name would take each other's partitions"};
}

int RelayStore::heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                          const relay::BrokerView& broker) {
  const Timestamp at = now();
  const std::string host = host::name();
  int purged = 0;
  presence_->renew();
  store_.database().write_along(
      [&](Connection& connection) {
        require_free_name(connection, worker, at, ttl);
        connection.run(sql::upsert_worker{.worker = worker,
                                          .host = host,
                                          .pid = getpid(),
                                          .presence = presence_->number(),
                                          .now = at,
                                          .until = at + ttl,
                                          .broker = broker.text,
                                          .is_cut_off = broker.is_cut_off});
        purged = static_cast<int>(connection.run(sql::purge_workers{
            .silent_since = at - forgotten_after * ttl, .absurd = at + 2 * ttl}));
      },
      Sync::none);
  return purged;
}

void RelayStore::leave(std::string_view worker) noexcept try {
  store_.database().write_along(
      [&](Connection& connection) {
        connection.run(sql::delete_worker{.worker = worker, .presence = presence_->number()});
      },
      Sync::none);
} catch (const std::exception&) {
  // Its heartbeat runs out by itself.
}

Overview RelayStore::look(std::chrono::microseconds lease_ttl,
                          std::chrono::microseconds heartbeat_ttl) {
  Overview overview;
  const Timestamp at = now();
  const Timestamp absurd = at + 2 * lease_ttl;
  store_.database().read([&](Connection& connection) {
    const Generation current = current_generation(connection);
    auto row = connection.rows(sql::partitions{});
    while (row.step()) {
      const auto owner = row.owner();
      const bool is_over = row.lease_until() <= at || row.lease_until() > absurd;
      const PartitionId id{static_cast<int>(row.partition())};
      overview.partitions.push_back(
          {.id = id,
           .owner = std::string{owner.value_or("")},
           .is_free = !owner || is_over,
           .is_expired = owner && is_over,
           .is_stopped = row.stopped().has_value(),
           .is_lost = row.stopped() == "broker_lost",
           .is_needed = current.has(id) || row.first_waiting() || row.has_redeliveries()});
    }
    auto worker = connection.rows(sql::workers{});
    while (worker.step()) {
      const Timestamp until = worker.heartbeat_until();
      if (until <= at || until > at + 2 * heartbeat_ttl) continue;
      overview.workers.emplace_back(worker.worker());
      if (worker.is_cut_off()) overview.cut_off.emplace_back(worker.worker());
    }
  });
  return overview;
}

// --- leases

std::optional<Standing> RelayStore::acquire(PartitionId partition, std::string_view worker,
                                            std::chrono::microseconds ttl) {
  return take<sql::acquire>(partition, worker, ttl);
}

std::optional<Standing> RelayStore::acquire_lost(PartitionId partition, std::string_view worker,
                                                 std::chrono::microseconds ttl) {
  return take<sql::acquire_lost>(partition, worker, ttl);
}

template <class Acquire>
std::optional<Standing> RelayStore::take(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) {
  std::optional<Standing> standing;
  const Timestamp at = now();
  store_.database().write_along(
      [&](Connection& connection) {
        bool unclean = false;
        std::string problem;
        {
          auto before = connection.rows(sql::standing{.partition = partition.number});
          if (!before.step()) return;
          unclean = before.owner().has_value();
          problem = problem_of(before);
        }
        if (!problem.empty()) return stop_damaged(connection, partition, problem);
        const bool acquired = connection.run(Acquire{.partition = partition.number,
                                                     .worker = worker,
                                                     .now = at,
                                                     .absurd = at + 2 * ttl,
                                                     .until = at + ttl}) == 1;
        if (!acquired) return;
        auto now_held = connection.rows(sql::standing{.partition = partition.number});
        now_held.step();
        standing = read(now_held, at);
        standing->unclean = unclean;
      },
      Sync::none);
  return standing;
}

bool RelayStore::renew(const Lease& lease, std::chrono::microseconds ttl) {
  bool renewed = false;
  const Timestamp at = now();
  store_.database().write_along(
      [&](Connection& connection) {
        renewed = connection.run(sql::renew{.partition = lease.partition.number,
                                            .owner = lease.owner,
                                            .epoch = lease.epoch,
                                            .now = at,
                                            .until = at + ttl}) == 1;
      },
      Sync::none);
  return renewed;
}

void RelayStore::release(const Lease& lease) {
  store_.database().write_along(
      [&](Connection& connection) {
        connection.run(sql::release{
            .partition = lease.partition.number, .owner = lease.owner, .epoch = lease.epoch});
      },
      Sync::none);
}

// --- messages

std::unique_ptr<SqliteBatch> RelayStore::make_batch() {
  // While a batch lives it points to names.
  if (memory_.use_count() == 1) memory_->reader->trim();
  return std::make_unique<SqliteBatch>(memory_);
}

std::unique_ptr<relay::PendingBatch> RelayStore::next(PartitionId partition,
                                                      const relay::Cursor& cursor,
                                                      const relay::BatchLimit& limit) {
  auto batch = make_batch();
  store_.database().read_snapshot([&](Connection& connection) {
    const std::int64_t end = open_end(connection, open_generation_);
    batch->read(connection, partition, cursor, end, limit, now());
  });
  return batch;
}

std::unique_ptr<relay::PendingBatch> RelayStore::read_again(const relay::PendingMessage& message) {
  auto batch = make_batch();
  store_.database().read_snapshot(
      [&](Connection& connection) { batch->take(connection, {message}); });
  return batch;
}

std::vector<EventId> RelayStore::ids_of(std::span<const GlobalSequence> sequences) {
  std::vector<EventId> ids;
  store_.database().read([&](Connection& connection) {
    for (const GlobalSequence sequence : sequences) {
      auto row = connection.rows(sql::event_id{.sequence = sequence.value()});
      EventId::Bytes bytes{};
      if (row.step() && row.event_id().size() == bytes.size()) {
        std::memcpy(bytes.data(), row.event_id().data(), bytes.size());
      }
      ids.emplace_back(bytes);
    }
  });
  return ids;
}

bool RelayStore::write(bool durable, const std::function<bool(Connection&)>& work) {
  try {
    store_.database().write_along(
        [&](Connection& connection) {
          if (!work(connection)) throw Fenced{};
        },
        Sync::none);
  } catch (const Fenced&) {
    return false;
  }
  // Under full durability the events were synced when they were appended, and this needn't be.
  // Under relaxed the whole log goes to the disk before anything leaves, while others commit on.
  if (durable && store_.database().is_relaxed()) store_.database().sync();
  return true;
}

bool RelayStore::advance(const Lease& lease, const relay::Advance& advance, bool durable) {
  const Timestamp at = now();
  return write(durable,
               [&](Connection& connection) { return apply(connection, lease, advance, at); });
}

bool RelayStore::note(const Lease& lease, const relay::Trouble& trouble) {
  const Timestamp at = now();
  return write(false, [&](Connection& connection) {
    const bool is_ours =
        connection.run(sql::note_partition{.partition = lease.partition.number,
                                           .owner = lease.owner,
                                           .epoch = lease.epoch,
                                           .attempts = trouble.attempts,
                                           .next_attempt_at = end_of(trouble.backoff, at),
                                           .error = database::or_null(trouble.error)}) == 1;
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
                                     .next_attempt_at = end_of(trouble.message_backoff, at),
                                     .error = trouble.error});
    return true;
  });
}

bool RelayStore::stop(const Lease& lease, std::string_view reason, std::string_view detail) {
  return write(false, [&](Connection& connection) {
    return connection.run(sql::stop{.partition = lease.partition.number,
                                    .owner = lease.owner,
                                    .epoch = lease.epoch,
                                    .reason = reason,
                                    .detail = detail}) == 1;
  });
}

bool RelayStore::continue_lost(const Lease& lease, bool is_whole) {
  return write(false, [&](Connection& connection) {
    return connection.run(sql::continue_lost{.partition = lease.partition.number,
                                             .owner = lease.owner,
                                             .epoch = lease.epoch,
                                             .is_whole = is_whole,
                                             .now = now()}) == 1;
  });
}

}  // namespace stela::outbox
