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

#include <stela/framework/error.hpp>
#include <stela/framework/not_found.hpp>

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

/// To the earlier one.
void lower(std::optional<Timestamp>& earliest, Timestamp time) {
  earliest = std::min(earliest.value_or(time), time);
}

PartitionStatus read_partition(const sql::status_of_partitions::Row& row, Timestamp now,
                               const Generation& current) {
  const PartitionId id{static_cast<int>(row.partition())};
  const auto owner = row.owner();
  const bool is_sending = owner && row.lease_until() > now && row.next_attempt_at() <= now;
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
                            .stopped_at = row.stopped_at()};
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

/// The end of what can be published.
std::int64_t last_published(Connection& connection) {
  auto last = connection.rows(sql::last_published{});
  last.step();
  return last.sequence();
}

std::vector<GlobalSequence> events_after(Connection& connection, const std::string& stream,
                                         std::int64_t after, std::int64_t end) {
  constexpr std::int64_t page = 256;
  std::vector<GlobalSequence> found;
  if (stream.empty()) {
    auto rows =
        connection.rows(sql::publishable_events{.first = after + 1, .last = end, .most = page});
    while (rows.step()) found.emplace_back(rows.sequence());
    return found;
  }
  auto number = connection.rows(sql::stream_number{.name = stream});
  if (!number.step()) throw NotFound{"there is no stream '" + stream + "'"};
  auto rows = connection.rows(
      sql::publishable_of_stream{.stream = number.stream(), .after = after, .most = page});
  while (rows.step()) found.emplace_back(rows.sequence());
  return found;
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
    const WorkerIdentity identity{
        .host = workers.host(), .pid = workers.pid(), .presence = workers.presence()};
    const follow::StoredLease heartbeat{workers.heartbeat_until(),
                                        follow::length_of(workers.heartbeat_ttl())};
    const WorkerProcess process = find_process(database, identity);
    const bool is_dead = identity.presence && process == WorkerProcess::ended;
    status.workers.push_back({.name = std::string{workers.worker()},
                              .host = std::string{identity.host},
                              .pid = identity.pid,
                              .started_at = workers.started_at(),
                              .heartbeat_until = heartbeat.until,
                              .is_alive = !is_dead && !follow::is_over(heartbeat, status.at),
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
  add_up(status);
  return status;
}

// --- messages

class OutboxView::Listing {
 public:
  Listing(Connection& connection, database::Database& database, const Partitioner& partitioner,
          const MessageQuery& query, Timestamp now)
      : connection_{connection},
        placement_{connection, database, partitioner},
        locator_{connection, placement_, now},
        query_{query} {}

  std::vector<OutboxMessage> read() {
    const auto state = query_.state;
    const bool waits = !state || *state == MessageState::pending ||
                       *state == MessageState::in_flight || *state == MessageState::retrying;
    if (waits) {
      for (const PartitionId partition : partitions()) read_waiting(partition);
    }
    if (!state || *state == MessageState::parked) read_list<sql::list_parked>(MessageState::parked);
    if (state == MessageState::discarded) read_list<sql::list_discarded>(MessageState::discarded);
    std::sort(found_.begin(), found_.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    const auto most = static_cast<std::size_t>(std::max(query_.limit, 0));
    if (found_.size() > most) found_.erase(found_.begin() + query_.limit, found_.end());
    for (OutboxMessage& message : found_) locator_.complete(message);
    return std::move(found_);
  }

 private:
  std::vector<PartitionId> partitions() {
    if (query_.partition) return {*query_.partition};
    std::vector<PartitionId> all;
    auto rows = connection_.rows(sql::partitions{});
    while (rows.step()) all.push_back({static_cast<int>(rows.partition())});
    return all;
  }

  void read_waiting(PartitionId partition) {
    if (query_.state == MessageState::retrying) {
      read_pages<sql::list_retrying>(partition);
    } else {
      read_pages<sql::list_waiting>(partition);
    }
    read_pages<sql::list_redeliveries>(partition);
  }

  /// Page by page, until enough are of the state that is asked for.
  template <class List>
  void read_pages(PartitionId partition) {
    std::int64_t after = query_.after.value();
    int wanted = query_.limit;
    for (bool more = true; more && wanted > 0;) {
      auto rows = connection_.rows(List{.partition = partition.number,
                                        .after = after,
                                        .type = database::or_null(query_.type),
                                        .error = database::or_null(query_.error),
                                        .most = page});
      int seen = 0;
      while (rows.step()) {
        ++seen;
        after = rows.sequence();
        OutboxMessage message = locator_.read_waiting(rows);
        if (query_.state && message.state != *query_.state) continue;
        if (wanted-- <= 0) return;
        found_.push_back(std::move(message));
      }
      more = seen == page;
    }
  }

  template <class List>
  void read_list(MessageState state) {
    std::optional<std::int64_t> partition;
    if (query_.partition) partition = query_.partition->number;
    auto rows = connection_.rows(List{.after = query_.after.value(),
                                      .partition = partition,
                                      .type = database::or_null(query_.type),
                                      .error = database::or_null(query_.error),
                                      .most = query_.limit});
    while (rows.step()) found_.push_back(read_set_aside(rows, state));
  }

  static constexpr int page = 256;

  Connection& connection_;
  Placement placement_;
  Locator locator_;
  const MessageQuery& query_;
  std::vector<OutboxMessage> found_;
};

std::vector<OutboxMessage> OutboxView::list(const MessageQuery& query) {
  if (query.limit < 1) throw UsageError{"limit must be 1 or more"};
  if (query.partition) require_partition(*query.partition);
  if (!query.stream.empty() || query.state == MessageState::published) {
    return list_events(query);
  }
  std::vector<OutboxMessage> messages;
  store_.database().read([&](Connection& connection) {
    Listing listing{connection, store_.database(), partitioner_, query, store_.database().now()};
    messages = listing.read();
  });
  return messages;
}

void OutboxView::require_partition(PartitionId partition) {
  store_.database().read([&](Connection& connection) {
    {
      auto row = connection.rows(sql::partition_exists{.partition = partition.number});
      row.step();
      if (row.is_there()) return;
    }
    // Or messages wait in one that has no row.
    const std::vector<std::int64_t> unknown = unknown_partitions(connection);
    const auto at = std::find(unknown.begin(), unknown.end(), partition.number);
    if (at == unknown.end()) throw NotFound{"there is no partition " + partition.label()};
  });
}

std::vector<OutboxMessage> OutboxView::list_events(const MessageQuery& query) {
  std::vector<OutboxMessage> found;
  std::int64_t after = query.after.value();
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  const auto is_wanted = [&](const Located& located) {
    if (located.is_missing) return false;
    const MessageState state = located.message.state;
    const bool state_fits =
        query.state ? state == *query.state
                    : state != MessageState::published && state != MessageState::discarded;
    return state_fits && (!query.partition || located.message.partition == *query.partition) &&
           (query.type.empty() || located.message.type == query.type) &&
           located.message.last_error.find(query.error) != std::string::npos;
  };
  for (bool more = true; more && static_cast<int>(found.size()) < query.limit;) {
    store_.database().read([&](Connection& connection) {
      if (query.state == MessageState::published) end = last_published(connection);
      std::vector<GlobalSequence> page = events_after(connection, query.stream, after, end);
      more = !page.empty();
      Placement placement{connection, store_.database(), partitioner_};
      Locator locator{connection, placement, store_.database().now()};
      for (const GlobalSequence sequence : page) {
        after = sequence.value();
        auto located = locator.find(sequence);
        if (!located || !is_wanted(*located)) continue;
        found.push_back(std::move(located->message));
        if (static_cast<int>(found.size()) == query.limit) return;
      }
    });
  }
  return found;
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

std::vector<OperatorAction> OutboxView::actions(const ActionQuery& query) {
  std::vector<OperatorAction> found;
  store_.database().read([&](Connection& connection) {
    auto rows = connection.rows(
        sql::list_actions{.before = query.before.value_or(std::numeric_limits<std::int64_t>::max()),
                          .most = query.limit});
    while (rows.step()) {
      found.push_back({rows.action(), rows.at(), std::string{rows.who()}, std::string{rows.what()},
                       std::string{rows.detail()}});
    }
  });
  return found;
}

}  // namespace stela::outbox
