#include "tables/relay_store.hpp"

#include "database/database.hpp"
#include "database/host.hpp"
#include "database/journal.hpp"
#include "follow/lease.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/workers.hpp"
#include "tables/failure_group.hpp"
#include "tables/generations.hpp"
#include "tables/outbox_view.hpp"
#include "tables/worker_process.hpp"

#include <stela/framework/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::outbox {

using database::Connection;
using database::Sync;
using relay::Overview;

namespace {

/// Workers are forgotten after this many heartbeats of silence.
constexpr std::int64_t forgotten_after = 20;

template <class Row>
follow::StoredLease heartbeat_of(const Row& row) {
  return {row.heartbeat_until(), std::chrono::microseconds{row.heartbeat_ttl()}};
}

/// Forgets workers that were silent for long or have an absurd heartbeat. A live one registers
/// again.
int purge_workers(Connection& connection, Timestamp now, Timestamp silent_since) {
  std::vector<std::pair<std::string, Timestamp>> gone;
  {
    auto worker = connection.rows(sql::workers{});
    while (worker.step()) {
      const follow::StoredLease heartbeat = heartbeat_of(worker);
      if (heartbeat.until >= silent_since && !follow::is_absurd(heartbeat, now)) continue;
      gone.emplace_back(worker.worker(), heartbeat.until);
    }
  }
  std::int64_t purged = 0;
  for (const auto& [worker, until] : gone) {
    purged += connection.run(sql::purge_worker{.worker = worker, .found_until = until});
  }
  return static_cast<int>(purged);
}

}  // namespace

RelayStore::RelayStore(stela::Store& store, bool leasing)
    : store_{store}, leasing_{leasing}, presence_{store.database().appear()} {
  memory_->reader = store.database().make_event_reader();
}

Timestamp RelayStore::now() const {
  return store_.database().now();
}

std::string RelayStore::store_id() const {
  return store_.id().to_string();
}

// --- workers

bool RelayStore::require_free_name(Connection& connection, std::string_view worker,
                                   Timestamp at) const {
  auto row = connection.rows(sql::find_worker{.worker = worker});
  if (!row.step()) return false;
  const follow::StoredLease heartbeat = heartbeat_of(row);
  const bool was_cut_off = row.is_cut_off();
  if (row.presence() == presence_->number() || follow::is_over(heartbeat, at)) return was_cut_off;
  if (find_process(store_.database(), row.presence()) == WorkerProcess::ended) return was_cut_off;
  throw UsageError{"a worker named '" + std::string{worker} + "' is alive (host " +
                   std::string{row.host()} + ", process " + std::to_string(row.pid()) +
                   "); two of one name would take each other's partitions"};
}

void RelayStore::require_alone(Connection& connection, std::string_view worker,
                               Timestamp at) const {
  auto row = connection.rows(sql::workers{});
  while (row.step()) {
    if (row.worker() == worker || follow::is_over(heartbeat_of(row), at)) continue;
    if (find_process(store_.database(), row.presence()) == WorkerProcess::ended) continue;
    throw UsageError{"this outbox has leasing off, so one worker has all of it, and '" +
                     std::string{row.worker()} + "' is alive (host " + std::string{row.host()} +
                     ", process " + std::to_string(row.pid()) +
                     "); stop that one first. If it has ended on a host that can't be asked, its "
                     "heartbeat runs out by itself"};
  }
}

int RelayStore::heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                          const relay::BrokerView& broker) {
  const Timestamp at = now();
  const std::string host = host::name();
  int purged = 0;
  const bool is_new_minute = database::minute_of(at) != sampled_minute_;
  presence_->renew();
  store_.database().write_along(
      [&](Connection& connection) {
        const bool was_cut_off = require_free_name(connection, worker, at);
        if (!leasing_) require_alone(connection, worker, at);
        connection.run(sql::upsert_worker{.worker = worker,
                                          .host = host,
                                          .pid = getpid(),
                                          .presence = presence_->number(),
                                          .now = at,
                                          .until = at + ttl,
                                          .ttl = ttl.count(),
                                          .broker = to_string(broker.status),
                                          .is_cut_off = broker.is_cut_off});
        if (was_cut_off != broker.is_cut_off) {
          const std::string state = to_string(broker.status);
          database::note(
              connection, at,
              database::StateChange{.part = "outbox",
                                    .subject = worker,
                                    .what = broker.is_cut_off ? "cut off" : "reaches its broker",
                                    .detail = state});
        }
        purged = purge_workers(connection, at, at - forgotten_after * ttl);
        if (is_new_minute) sample(connection, at);
      },
      Sync::none);
  sampled_minute_ = database::minute_of(at);
  return purged;
}

void RelayStore::sample(Connection& connection, Timestamp at) {
  const OutboxStatus status = read_status(connection, store_.database());
  const auto lag = status.lag.value_or(std::chrono::microseconds{0});
  const auto workers = std::count_if(status.workers.begin(), status.workers.end(),
                                     [](const WorkerStatus& one) { return one.is_alive; });
  const auto unowned = std::count_if(
      status.partitions.begin(), status.partitions.end(), [](const PartitionStatus& one) {
        const bool is_needed = one.is_current || one.pending > 0 || one.redeliveries > 0;
        return is_needed && (one.owner.empty() || one.lease_left.count() <= 0);
      });
  const database::Sample samples[] = {
      {"store.head_total", last_event(connection)},
      {"outbox.published_total", status.published},
      {"outbox.failed_total", status.failures},
      {"outbox.taken_over_total", status.takeovers},
      {"outbox.pending", status.pending + status.redeliveries},
      {"outbox.parked", status.parked},
      {"outbox.lag_ms", std::chrono::floor<std::chrono::milliseconds>(lag).count()},
      {"outbox.workers", workers},
      {"outbox.unowned", unowned},
      {"outbox.stopped", status.stopped}};
  database::sample(connection, at, samples);
}

void RelayStore::leave(std::string_view worker) noexcept try {
  store_.database().write_along(
      [&](Connection& connection) {
        connection.run(sql::delete_worker{.worker = worker, .presence = presence_->number()});
      },
      Sync::none);
} catch (const std::exception&) {
  // The heartbeat expires by itself.
}

Overview RelayStore::look() {
  Overview overview;
  const Timestamp at = now();
  store_.database().read([&](Connection& connection) {
    const Generation current = current_generation(connection);
    auto row = connection.rows(sql::partitions{});
    while (row.step()) {
      const auto owner = row.owner();
      const bool is_over =
          follow::is_over({row.lease_until(), std::chrono::microseconds{row.lease_ttl()}}, at);
      const PartitionId id{static_cast<int>(row.partition())};
      overview.partitions.push_back({.id = id,
                                     .owner = std::string{owner.value_or("")},
                                     .is_free = !owner || is_over || !leasing_,
                                     .is_expired = owner && is_over,
                                     .is_stopped = row.stopped().has_value(),
                                     .is_lost = row.stopped() == to_string(StopReason::broker_lost),
                                     .is_needed = current.has(id) || row.first_waiting() ||
                                                  row.has_redeliveries() || row.adopted(),
                                     .is_to_retry = row.is_to_retry()});
    }
    auto worker = connection.rows(sql::workers{});
    while (worker.step()) {
      // Without leasing nobody shares, and the heartbeat of a dead worker may not have expired yet.
      if (!leasing_ || follow::is_over(heartbeat_of(worker), at)) continue;
      overview.workers.emplace_back(worker.worker());
      if (worker.is_cut_off()) overview.cut_off.emplace_back(worker.worker());
    }
  });
  return overview;
}

// --- messages

std::unique_ptr<StoredBatch> RelayStore::make_batch() {
  // A live batch points to names.
  if (memory_.use_count() == 1) memory_->reader->trim();
  return std::make_unique<StoredBatch>(memory_);
}

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

}  // namespace stela::outbox
