#include "tables/outbox_view.hpp"

#include "database/database.hpp"
#include "follow/lease.hpp"
#include "outbox_sql/logs.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/states.hpp"
#include "outbox_sql/status.hpp"
#include "tables/generations.hpp"
#include "tables/settings.hpp"
#include "tables/worker_process.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace stela::outbox {

using database::Connection;

namespace {

std::optional<BrokerStatus> reported_broker(std::string_view words) {
  if (words.empty()) return std::nullopt;
  return parse_broker_status(words);
}

/// Keeps the earlier time.
void lower(std::optional<Timestamp>& earliest, Timestamp time) {
  earliest = std::min(earliest.value_or(time), time);
}

PartitionStatus read_partition(const sql::status_of_partitions::Row& row, Timestamp now,
                               const Generation& current) {
  const PartitionId id{static_cast<int>(row.partition())};
  const auto owner = row.owner();
  // Discarded messages of a stopped partition are no longer in flight.
  const bool waits = row.pending() > 0 || row.redeliveries() > 0;
  const bool is_sending = owner && waits && row.lease_until() > now && row.next_attempt_at() <= now;
  PartitionStatus partition{.id = id,
                            .owner = std::string{owner.value_or("")},
                            .epoch = row.epoch(),
                            .is_current = current.has(id),
                            .pending = std::min(row.pending(), most_counted_pending),
                            .is_pending_lower_bound = row.pending() > most_counted_pending,
                            .in_flight = is_sending ? row.flight_count() : 0,
                            .retrying = row.retrying(),
                            .redeliveries = row.redeliveries(),
                            .parked = row.parked(),
                            .discarded = row.discarded(),
                            .published = row.published(),
                            .published_through = GlobalSequence{row.published_through()},
                            .broker_sequence = static_cast<std::uint64_t>(row.broker_sequence()),
                            .attempts = static_cast<int>(row.attempts()),
                            .backing_since = row.backing_since(),
                            .last_error = std::string{row.last_error()},
                            .stopped_detail = std::string{row.stopped_detail()},
                            .stopped_at = row.stopped_at(),
                            .uncompared_since = row.uncompared_since(),
                            .broker_first = static_cast<std::uint64_t>(row.broker_first())};
  if (const auto word = row.failure_class()) partition.failure = parse_failure_class(*word);
  if (!row.stopped().empty()) partition.stopped = parse_stop_reason(row.stopped());
  if (partition.stopped == StopReason::unrecognized) {
    partition.stopped_detail = std::string{row.stopped()} + ": " + partition.stopped_detail;
  }
  if (owner) partition.lease_left = row.lease_until() - now;
  if (is_sending && row.flight_count() > 0 && row.moved_at() > Timestamp{}) {
    partition.flight_age = std::max(now - row.moved_at(), std::chrono::microseconds{0});
  }
  if (row.next_attempt_at() > now) partition.next_attempt_at = row.next_attempt_at();
  if (const auto oldest = row.oldest()) partition.oldest = GlobalSequence{*oldest};
  partition.oldest_recorded_at = row.oldest_recorded_at();
  partition.waiting_since = partition.oldest_recorded_at;
  if (const auto since = row.redelivery_requested_at()) lower(partition.waiting_since, *since);
  return partition;
}

void add_up(OutboxStatus& status) {
  std::optional<Timestamp> oldest;
  for (const PartitionStatus& partition : status.partitions) {
    status.pending += partition.pending;
    status.is_pending_lower_bound |= partition.is_pending_lower_bound;
    status.in_flight += partition.in_flight;
    status.retrying += partition.retrying;
    status.redeliveries += partition.redeliveries;
    status.parked += partition.parked;
    status.stopped += partition.stopped ? 1 : 0;
    if (partition.waiting_since) lower(oldest, *partition.waiting_since);
  }
  if (oldest) status.lag = std::max(status.at - *oldest, std::chrono::microseconds{0});
}

void read_generations(Connection& connection, OutboxStatus& status) {
  const std::int64_t open = open_generation(connection).number;
  auto waiting = connection.rows(sql::first_waiting{});
  waiting.step();
  const bool anything = waiting.sequence() || waiting.generation();
  for (const Generation& generation : all_generations(connection)) {
    status.generations.push_back({generation.number, GlobalSequence{generation.first_sequence},
                                  generation.partition_count,
                                  generation.number < open || !anything});
  }
}

}  // namespace

// --- status

OutboxStatus OutboxView::status() {
  OutboxStatus status;
  store_.database().read(
      [&](Connection& connection) { status = read_status(connection, store_.database()); });
  return status;
}

OutboxStatus read_status(Connection& connection, database::Database& database) {
  OutboxStatus status;
  status.at = database.now();
  const Generation current = current_generation(connection);
  status.partition_count = current.partition_count;
  auto settings = connection.rows(sql::settings{});
  settings.step();
  status.fence = parse_fence(settings.fence());
  status.leasing = settings.leasing();
  auto partitioner = connection.rows(sql::partitioner_name{});
  if (partitioner.step()) status.partitioner = partitioner.detail();
  auto partitions = connection.rows(sql::status_of_partitions{.most = most_counted_pending + 1});
  while (partitions.step()) {
    status.partitions.push_back(read_partition(partitions, status.at, current));
  }
  for (const std::int64_t number : unknown_partitions(connection)) {
    auto waiting = connection.rows(sql::count_waiting{.partition = number});
    waiting.step();
    auto again = connection.rows(sql::count_redeliveries{.partition = number});
    again.step();
    status.partitions.push_back(
        {.id = {static_cast<int>(number)},
         .is_current = false,
         .pending = waiting.count(),
         .redeliveries = again.count(),
         .stopped = StopReason::missing,
         .stopped_detail = "messages wait in a partition that doesn't exist; a sync of the "
                           "partitions puts them where they belong"});
  }
  auto workers = connection.rows(sql::status_of_workers{});
  while (workers.step()) {
    const follow::StoredLease heartbeat{workers.heartbeat_until(),
                                        std::chrono::microseconds{workers.heartbeat_ttl()}};
    const WorkerProcess process = find_process(database, workers.presence());
    status.workers.push_back(
        {.name = std::string{workers.worker()},
         .host = std::string{workers.host()},
         .pid = workers.pid(),
         .started_at = workers.started_at(),
         .heartbeat_until = heartbeat.until,
         .heartbeat_ttl = heartbeat.length,
         .is_alive = process != WorkerProcess::ended && !follow::is_over(heartbeat, status.at),
         .process = process,
         .partitions = static_cast<int>(workers.partitions()),
         .broker = reported_broker(workers.broker()),
         .broker_since = workers.broker_since(),
         .is_cut_off = workers.is_cut_off()});
  }
  read_generations(connection, status);
  auto totals = connection.rows(sql::totals{});
  totals.step();
  status.published = totals.published();
  status.discarded = totals.discarded();
  status.failures = totals.failures();
  status.takeovers = totals.takeovers();
  status.last_parked_at = totals.last_parked_at();
  add_up(status);
  return status;
}

// --- messages

void OutboxView::require_partition(PartitionId partition) {
  store_.database().read([&](Connection& connection) {
    {
      auto row = connection.rows(sql::partition_exists{.partition = partition.number});
      row.step();
      if (row.is_there()) return;
    }
    // Messages may be pending in a partition without a row.
    const std::vector<std::int64_t> unknown = unknown_partitions(connection);
    const auto at = std::find(unknown.begin(), unknown.end(), partition.number);
    if (at == unknown.end()) throw NotFound{"there is no partition " + partition.label()};
  });
}

std::optional<OutboxMessage> OutboxView::show(GlobalSequence sequence) {
  std::optional<OutboxMessage> message;
  store_.database().read([&](Connection& connection) {
    Placement placement{connection, store_.database(), partitioner_};
    Locator locator{connection, placement, store_.database().now()};
    auto located = locator.find(sequence);
    if (located && !located->is_missing) message = std::move(located->message);
  });
  return message;
}

// --- logs

std::vector<PublishedBatch> OutboxView::batches(std::optional<PartitionId> partition, int limit) {
  std::vector<PublishedBatch> found;
  store_.database().read([&](Connection& connection) {
    std::vector<std::int64_t> partitions;
    auto all = connection.rows(sql::partitions{});
    while (!partition && all.step()) partitions.push_back(all.partition());
    if (partition) partitions.push_back(partition->number);
    for (const std::int64_t number : partitions) {
      auto rows = connection.rows(sql::list_batches{.partition = number, .most = limit});
      while (rows.step()) {
        found.push_back({.partition = {static_cast<int>(rows.partition())},
                         .first = GlobalSequence{rows.first_sequence()},
                         .last = GlobalSequence{rows.last_sequence()},
                         .count = rows.count(),
                         .redelivery = rows.redelivery(),
                         .published_at = rows.published_at(),
                         .first_broker = static_cast<std::uint64_t>(rows.first_broker()),
                         .last_broker = static_cast<std::uint64_t>(rows.last_broker())});
      }
    }
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.published_at > b.published_at; });
  const auto most = static_cast<std::size_t>(std::max(limit, 0));
  if (found.size() > most) found.resize(most);
  return found;
}

namespace {

OperatorAction read_action(const sql::action_row& row) {
  return {.number = row.action(),
          .at = row.at(),
          .who = std::string{row.who()},
          .what = std::string{row.what()},
          .detail = std::string{row.detail()},
          .selection = std::string{row.selection()},
          .planned = row.planned(),
          .done = row.done(),
          .changed = row.changed(),
          .state = std::string{row.state()}};
}

}  // namespace

std::vector<OperatorAction> OutboxView::actions(const ActionQuery& query) {
  std::vector<OperatorAction> found;
  store_.database().read([&](Connection& connection) {
    found.clear();
    const std::int64_t before = query.before.value_or(std::numeric_limits<std::int64_t>::max());
    const auto add = [&](const auto& statement) {
      auto rows = connection.rows(statement);
      while (rows.step()) found.push_back(read_action(rows));
    };
    if (query.direction == Direction::backward) {
      add(sql::list_actions{
          .item_of = query.items_of, .after = query.after, .before = before, .most = query.limit});
    } else {
      add(sql::list_actions_forward{
          .item_of = query.items_of, .after = query.after, .before = before, .most = query.limit});
    }
  });
  return found;
}

}  // namespace stela::outbox
