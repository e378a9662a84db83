#include "sqlite/comparison.hpp"

#include "outbox_sql.hpp"
#include "sqlite/core.hpp"
#include "sqlite/locator.hpp"
#include "sqlite/settings.hpp"

#include <cstring>

namespace stela::outbox {

using sqlite::Connection;
using sqlite::Query;

namespace {

constexpr std::size_t page_rows = 1'000;
constexpr std::size_t most_examples = 100;
constexpr std::size_t sent_at_once = 500;
/// What a message's id begins with.
constexpr std::size_t event_id_size = 36;

bool keeps_all_in_one_place(sqlite::Store& store) {
  bool shared = false;
  store.core().reading().read([&](Connection& connection) {
    Query settings = connection.query(sql::settings);
    shared = settings.step() && settings.text(0) == to_string(Fence::none);
  });
  return shared;
}

bool has_event(Connection& connection, std::int64_t sequence, std::string_view id) {
  Query row = connection.query(sql::event_id);
  if (!row.bind(1, sequence).step()) return false;
  EventId::Bytes bytes{};
  const std::string_view stored = row.blob(0);
  if (stored.size() != bytes.size()) return false;
  std::memcpy(bytes.data(), stored.data(), bytes.size());
  return EventId{bytes}.to_string() == id.substr(0, event_id_size);
}

}  // namespace

Comparison::Comparison(sqlite::Store& store, const Partitioner& partitioner,
                       const OnProgress& progress)
    : store_{store},
      partitioner_{partitioner},
      progress_{progress},
      began_{store.core().now()},
      is_shared_{keeps_all_in_one_place(store)} {}

// --- the broker

void Comparison::read(BrokerContents& broker) {
  std::vector<PartitionId> partitions;
  store_.core().reading().read([&](Connection& connection) {
    Query rows = connection.query(sql::published_partitions);
    while (rows.step()) partitions.push_back({static_cast<int>(rows.integer(0))});
  });
  if (is_shared_ && !partitions.empty()) partitions = {PartitionId{}};
  for (const PartitionId partition : partitions) read(broker, partition);
}

void Comparison::read(BrokerContents& broker, PartitionId partition) {
  const std::string store_id = store_.id().to_string();
  std::vector<Found> page;
  std::optional<std::int64_t> first;
  const bool dropped = broker.read(partition, [&](const FoundMessage& message) {
    if (!message.is_ours || message.store_id != store_id) {
      ++compared_.foreign;
      return;
    }
    if (!first && message.redelivery == 0) first = message.sequence.value();
    page.emplace_back(message.sequence.value(), message.message_id);
    if (page.size() == page_rows) recognise(page);
  });
  recognise(page);
  if (dropped) first_kept_[partition] = first;
}

/// A page at a time, so that no reader stays for as long as the broker takes.
void Comparison::recognise(std::vector<Found>& page) {
  store_.core().reading().read([&](Connection& connection) {
    for (const auto& [sequence, id] : page) {
      if (!has_event(connection, sequence, id)) {
        ++compared_.unknown;
        continue;
      }
      const auto at = static_cast<std::size_t>(sequence);
      if (at >= at_broker_.size()) at_broker_.resize(at + at / 2 + 1);
      at_broker_[at] = true;
      ++compared_.found;
    }
  });
  page.clear();
  report("reading the broker", compared_.found, 0);
}

void Comparison::report(std::string_view stage, std::int64_t done, std::int64_t total) const {
  if (progress_) progress_({.stage = stage, .done = done, .total = total});
}

bool Comparison::is_at_broker(std::int64_t sequence) const noexcept {
  const auto at = static_cast<std::size_t>(sequence);
  return at < at_broker_.size() && at_broker_[at];
}

bool Comparison::may_be_dropped(PartitionId partition, std::int64_t sequence) const {
  const auto at = first_kept_.find(is_shared_ ? PartitionId{} : partition);
  return at != first_kept_.end() && (!at->second || sequence < *at->second);
}

// --- the events

Compared Comparison::carry_out(SqliteOperations& operations, const CompareRequest& request) {
  const std::int64_t end = store_.last_sequence().value();
  std::int64_t next = request.from.value();
  for (bool more = true; more;) {
    const std::vector<GlobalSequence> missing = look(next, end, more);
    if (more) report("comparing", next - request.from.value(), end - request.from.value() + 1);
    for (const GlobalSequence sequence : missing) {
      if (compared_.examples.size() < most_examples) compared_.examples.push_back(sequence);
    }
    if (request.mode == Mode::dry_run) {
      compared_.missing += static_cast<std::int64_t>(missing.size());
      continue;
    }
    for (std::size_t i = 0; i < missing.size(); i += sent_at_once) {
      const std::size_t count = std::min(sent_at_once, missing.size() - i);
      compared_.missing += operations.republish(std::span{missing}.subspan(i, count), request.who);
    }
  }
  const bool is_whole = request.from.value() <= 1 && request.mode == Mode::carry_out;
  if (is_whole) operations.settle_losses(began_, request.who);
  return compared_;
}

std::vector<GlobalSequence> Comparison::look(std::int64_t& next, std::int64_t end, bool& more) {
  std::vector<GlobalSequence> missing;
  store_.core().reading().read([&](Connection& connection) {
    Placement placement{connection, store_.core().kinds(), partitioner_};
    placement.require_partitioner();
    Locator locator{connection, placement, store_.core().now()};
    std::vector<std::int64_t> page;
    {
      Query events = connection.query(sql::publishable_events);
      events.bind(1, next).bind(2, end).bind(3, static_cast<std::int64_t>(page_rows));
      while (events.step()) page.push_back(events.integer(0));
    }
    for (const std::int64_t sequence : page) {
      const auto located = locator.find(GlobalSequence{sequence});
      if (!located || located->is_missing) continue;
      const OutboxMessage& message = located->message;
      const bool meanwhile = message.since && *message.since > began_;
      // What is to be sent again already needn't be so twice.
      if (message.state != MessageState::published || message.redelivery > 0 || meanwhile) continue;
      ++compared_.checked;
      if (is_at_broker(sequence)) continue;
      if (may_be_dropped(message.partition, sequence)) {
        ++compared_.dropped;
      } else {
        missing.emplace_back(sequence);
      }
    }
    if (!page.empty()) next = page.back() + 1;
    more = page.size() == page_rows;
  });
  return missing;
}

}  // namespace stela::outbox
