#include "tables/comparison.hpp"

#include "database/database.hpp"
#include "outbox_sql/losses.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/states.hpp"
#include "tables/locator.hpp"
#include "tables/settings.hpp"

#include <string>

namespace stela::outbox {

using database::Connection;

namespace {

constexpr std::size_t page_rows = 1'000;
constexpr std::size_t most_examples = 100;
constexpr std::size_t sent_at_once = 500;

bool is_set(const std::vector<bool>& bits, std::int64_t sequence) noexcept {
  const auto at = static_cast<std::size_t>(sequence);
  return at < bits.size() && bits[at];
}

void set(std::vector<bool>& bits, std::int64_t sequence) {
  const auto at = static_cast<std::size_t>(sequence);
  if (at >= bits.size()) bits.resize(at + at / 2 + 1);
  bits[at] = true;
}

/// The next publishable events, in order.
std::vector<std::int64_t> page_of(Connection& connection, std::int64_t from, std::int64_t end) {
  std::vector<std::int64_t> page;
  auto events =
      connection.rows(sql::publishable_events{.first = from, .last = end, .most = page_rows});
  while (events.step()) page.push_back(events.sequence());
  return page;
}

/// An event with a pending redelivery needs no second one.
bool counts_as_published(const std::optional<Located>& located) {
  return located && !located->is_missing && located->message.state == MessageState::published &&
         located->message.redelivery == 0;
}

bool keeps_all_in_one_place(Store& store) {
  bool shared = false;
  store.database().read([&](Connection& connection) {
    auto settings = connection.rows(sql::settings{});
    shared = settings.step() && settings.fence() == to_string(Fence::none);
  });
  return shared;
}

}  // namespace

Comparison::Comparison(Store& store, const Partitioner& partitioner, const OnProgress& progress)
    : store_{store},
      partitioner_{partitioner},
      progress_{progress},
      known_{store},
      is_shared_{keeps_all_in_one_place(store)} {}

// --- what counts as published

void Comparison::note_published(std::int64_t from, std::int64_t end) {
  for (bool more = true; more;) {
    store_.database().read([&](Connection& connection) {
      Placement placement{connection, store_.database(), partitioner_};
      placement.require_partitioner();
      Locator locator{connection, placement, store_.database().now()};
      const std::vector<std::int64_t> page = page_of(connection, from, end);
      if (!page.empty()) locator.expect(page.front(), page.back());
      for (const std::int64_t sequence : page) {
        if (counts_as_published(locator.find(GlobalSequence{sequence}))) set(published_, sequence);
      }
      if (!page.empty()) from = page.back() + 1;
      more = page.size() == page_rows;
    });
  }
}

// --- the broker

void Comparison::read(BrokerContents& broker, GlobalSequence from) {
  // No host's clock tells what was published before the broker was read: other clocks may be ahead.
  note_published(from.value(), store_.last_sequence().value());
  std::vector<PartitionId> partitions;
  store_.database().read([&](Connection& connection) {
    auto rows = connection.rows(sql::published_partitions{});
    while (rows.step()) partitions.push_back({static_cast<int>(rows.partition())});
  });
  if (is_shared_ && !partitions.empty()) {
    known_.begin(partitions);
    return read(broker, PartitionId{});
  }
  for (const PartitionId partition : partitions) {
    known_.begin({&partition, 1});
    read(broker, partition);
  }
}

void Comparison::read(BrokerContents& broker, PartitionId partition) {
  const std::string store_id = store_.id().to_string();
  std::vector<FoundMessage> page;
  Kept kept;
  const bool dropped = broker.read(partition, [&](const FoundMessage& message) {
    if (kept.first_place == 0) kept.first_place = message.broker_sequence;
    if (!message.is_ours || message.store_id != store_id) {
      ++compared_.foreign;
      return;
    }
    page.push_back(message);
    if (page.size() == known_page) recognise(page, kept);
  });
  recognise(page, kept);
  auto& begin = begins_[partition];
  if (kept.first_place != 0) begin = static_cast<std::int64_t>(kept.first_place);
  if (!dropped) return;
  first_kept_[partition] = kept.first;
  for (const auto& [place, sequence] : known_.imported()) {
    if (kept.first_place == 0 || place < kept.first_place) set(dropped_, sequence);
  }
}

void Comparison::recognise(std::vector<FoundMessage>& page, Kept& kept) {
  const std::vector<std::int64_t> events = known_.find(page);
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (events[i] == 0) {
      ++compared_.unknown;
      continue;
    }
    // A message's own claims prove nothing, since anybody may have published it. The place of an
    // imported event says nothing about others.
    const bool is_first_delivery =
        page[i].redelivery == 0 && !known_.imported().contains(page[i].broker_sequence);
    if (!kept.first && is_first_delivery) kept.first = events[i];
    set(at_broker_, events[i]);
    ++compared_.found;
  }
  page.clear();
  report("reading the broker", compared_.found, 0);
}

void Comparison::report(std::string_view stage, std::int64_t done, std::int64_t total) const {
  if (progress_) progress_({.stage = stage, .done = done, .total = total});
}

bool Comparison::may_be_dropped(const OutboxMessage& message) const {
  if (is_set(dropped_, message.sequence.value())) return true;
  const auto at = first_kept_.find(is_shared_ ? PartitionId{} : message.partition);
  if (at == first_kept_.end()) return false;
  return !at->second || message.sequence.value() < *at->second;
}

// --- the events

Compared Comparison::carry_out(StoredOperations& operations, const CompareRequest& request) {
  const std::int64_t end = store_.last_sequence().value();
  std::int64_t next = request.from.value();
  for (bool more = true; more;) {
    const std::vector<GlobalSequence> missing = missing_of(look(next, end, more));
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
      compared_.missing += operations.send_lost(std::span{missing}.subspan(i, count), request.who);
    }
  }
  if (request.mode == Mode::carry_out && request.from == GlobalSequence{1}) {
    for (const auto& [partition, first] : begins_) operations.note_compared(partition, first);
  }
  return compared_;
}

std::vector<GlobalSequence> Comparison::missing_of(const std::vector<OutboxMessage>& absent) {
  std::vector<GlobalSequence> missing;
  for (const OutboxMessage& message : absent) {
    if (may_be_dropped(message)) {
      ++compared_.dropped;
    } else {
      missing.push_back(message.sequence);
    }
  }
  return missing;
}

std::vector<OutboxMessage> Comparison::look(std::int64_t& next, std::int64_t end, bool& more) {
  std::vector<OutboxMessage> absent;
  store_.database().read([&](Connection& connection) {
    Placement placement{connection, store_.database(), partitioner_};
    placement.require_partitioner();
    Locator locator{connection, placement, store_.database().now()};
    const std::vector<std::int64_t> page = page_of(connection, next, end);
    if (!page.empty()) locator.expect(page.front(), page.back());
    for (const std::int64_t sequence : page) {
      if (!is_set(published_, sequence)) continue;
      ++compared_.checked;
      if (is_set(at_broker_, sequence)) continue;
      auto located = locator.find(GlobalSequence{sequence});
      if (counts_as_published(located)) absent.push_back(std::move(located->message));
    }
    if (!page.empty()) next = page.back() + 1;
    more = page.size() == page_rows;
  });
  return absent;
}

}  // namespace stela::outbox
