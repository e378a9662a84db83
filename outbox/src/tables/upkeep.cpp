#include "tables/upkeep.hpp"

#include "database/database.hpp"
#include "outbox_sql/logs.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/operations.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/states.hpp"
#include "tables/locator.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace stela::outbox {

using database::Connection;
using database::Sync;

namespace {

constexpr std::int64_t step_rows = 1'000;
constexpr std::size_t republish_rows = 500;

/// A range of events, visited in order.
struct Span {
  GlobalSequence first;
  GlobalSequence last;

  void report(const OnProgress& listener, std::string_view stage, GlobalSequence at) const {
    if (!listener) return;
    listener({.stage = stage,
              .done = at.value() - first.value() + 1,
              .total = last.value() - first.value() + 1});
  }
};

/// One purge, step by step.
class Purge {
 public:
  Purge(Store& store, const PurgeOptions& options)
      : store_{store},
        carry_out_{options.mode == Mode::carry_out},
        steps_left_{options.max_steps},
        before_{store.database().now() - options.older_than} {}

  Purged run() {
    for (const std::int64_t partition : partitions()) purge_batches(partition);
    purge_actions();
    return purged_;
  }

 private:
  std::vector<std::int64_t> partitions() {
    std::vector<std::int64_t> all;
    store_.database().read([&](Connection& connection) {
      auto rows = connection.rows(sql::partition_numbers{});
      while (rows.step()) all.push_back(rows.partition());
    });
    return all;
  }

  /// Removes rows in a short transaction. Returns how many.
  template <class Statement>
  std::int64_t remove(const Statement& statement) {
    std::int64_t rows = 0;
    --steps_left_;
    store_.database().write([&](Connection& connection) { rows = connection.run(statement); },
                            Sync::none);
    return rows;
  }

  void purge_batches(std::int64_t partition) {
    std::int64_t after = -1;
    while (steps_left_ > 0) {
      std::int64_t last = 0;
      std::int64_t rows = 0;
      std::int64_t old = 0;
      store_.database().read([&](Connection& connection) {
        auto page = connection.rows(sql::batch_page{
            .partition = partition, .after = after, .old_before = before_, .most = step_rows});
        page.step();
        last = page.last();
        rows = page.count();
        old = page.old();
      });
      if (rows == 0) return;
      if (old > 0 && !carry_out_) purged_.batches += old;
      if (old > 0 && carry_out_) {
        purged_.batches += remove(sql::purge_batches{
            .partition = partition, .after = after, .last = last, .old_before = before_});
      }
      after = last;
    }
  }

  void purge_actions() {
    if (!carry_out_) {
      store_.database().read([&](Connection& connection) {
        auto old = connection.rows(sql::count_old_actions{.old_before = before_});
        old.step();
        purged_.actions = old.count();
      });
      return;
    }
    // Look first, so that an idle outbox isn't written to.
    bool more = true;
    while (more && steps_left_ > 0) {
      store_.database().read([&](Connection& connection) {
        auto oldest = connection.rows(sql::oldest_action{});
        more = oldest.step() && oldest.at() < before_;
      });
      if (!more) return;
      purged_.actions += remove(sql::purge_actions{.old_before = before_, .most = step_rows});
    }
  }

  Store& store_;
  const bool carry_out_;
  int steps_left_;
  const Timestamp before_;
  Purged purged_;
};

}  // namespace

Purged purge(Store& store, const PurgeOptions& options) {
  return Purge{store, options}.run();
}

namespace {

struct PublishedEvent {
  GlobalSequence sequence = {};
  /// The number of its event stream.
  std::int64_t stream = 0;
};

/// Selects the published events among these, of one partition if requested.
std::vector<PublishedEvent> published_of(Store& store, const Partitioner& partitioner,
                                         std::span<const GlobalSequence> sequences,
                                         std::optional<PartitionId> partition) {
  std::vector<PublishedEvent> published;
  store.database().read([&](Connection& connection) {
    Placement placement{connection, store.database(), partitioner};
    placement.require_partitioner();
    Locator locator{connection, placement, store.database().now()};
    for (const GlobalSequence sequence : sequences) {
      const auto located = locator.find(sequence);
      if (!located || located->is_missing) continue;
      if (located->message.state != MessageState::published) continue;
      if (partition && located->message.partition != *partition) continue;
      published.push_back({sequence, located->stream});
    }
  });
  return published;
}

void require_stream(Store& store, const std::string& name) {
  store.database().read([&](Connection& connection) {
    auto stream = connection.rows(sql::stream_number{.name = name});
    if (!stream.step()) throw NotFound{"there is no stream '" + name + "'"};
  });
}

EventRange events_of(Store& store, const RepublishSelection& selection) {
  if (!selection.stream.empty()) {
    require_stream(store, selection.stream);
    return store.read_stream(StreamId::parse(selection.stream));
  }
  return store.read_all({.from = selection.from,
                         .to = std::min(selection.to, store.last_sequence()),
                         .since = selection.since,
                         .until = selection.until});
}

bool is_meant(const StoredEvent& event, const RepublishSelection& selection) {
  return event.publishes() && event.sequence >= selection.from && event.sequence <= selection.to &&
         (!selection.since || event.recorded_at >= *selection.since) &&
         (!selection.until || event.recorded_at <= *selection.until);
}

}  // namespace

Affected republish(Store& store, StoredOperations& operations, const Partitioner& partitioner,
                   const RepublishRequest& request) {
  Affected affected;
  std::vector<GlobalSequence> step;
  std::unordered_set<std::int64_t> streams;
  const bool dry_run = request.mode == Mode::dry_run;
  const Span span{request.selection.from, std::min(request.selection.to, store.last_sequence())};
  const auto carry_out = [&] {
    if (step.empty()) return;
    const GlobalSequence last = step.back();
    const auto published = published_of(store, partitioner, step, request.selection.partition);
    step.clear();
    for (const PublishedEvent& event : published) {
      step.push_back(event.sequence);
      streams.insert(event.stream);
    }
    affected.messages +=
        dry_run ? static_cast<std::int64_t>(step.size()) : operations.republish(step, request.who);
    span.report(request.progress, dry_run ? "counting" : "republish", last);
    step.clear();
  };
  for (const StoredEvent& event : events_of(store, request.selection)) {
    if (request.stop.stop_requested()) {
      affected.next = event.sequence;
      break;
    }
    if (!is_meant(event, request.selection)) continue;
    step.push_back(event.sequence);
    if (step.size() == republish_rows) carry_out();
  }
  carry_out();
  affected.streams = static_cast<std::int64_t>(streams.size());
  return affected;
}

namespace {

/// Examines the next events for those without a state; true if there are more.
bool look_for_missing(Store& store, const Partitioner& partitioner, Span& left,
                      std::vector<GlobalSequence>& missing, std::int64_t& checked) {
  bool more = false;
  store.database().read([&](Connection& connection) {
    Placement placement{connection, store.database(), partitioner};
    placement.require_partitioner();
    Locator locator{connection, placement, store.database().now()};
    std::vector<std::int64_t> page;
    {
      auto events = connection.rows(sql::publishable_events{
          .first = left.first.value(), .last = left.last.value(), .most = step_rows});
      while (events.step()) page.push_back(events.sequence());
    }
    if (!page.empty()) locator.expect(page.front(), page.back());
    for (const std::int64_t sequence : page) {
      const auto located = locator.find(GlobalSequence{sequence});
      if (located && located->is_missing) missing.emplace_back(sequence);
      left.first = GlobalSequence{sequence + 1};
    }
    checked += static_cast<std::int64_t>(page.size());
    more = static_cast<std::int64_t>(page.size()) == step_rows;
  });
  return more;
}

}  // namespace

Reconciled reconcile(Store& store, StoredOperations& operations, const Partitioner& partitioner,
                     const ReconcileRequest& request) {
  constexpr std::size_t most_examples = 100;
  Reconciled result;
  const Span all{request.from, store.last_sequence()};
  Span left = all;
  for (bool more = true; more;) {
    std::vector<GlobalSequence> missing;
    more = look_for_missing(store, partitioner, left, missing, result.checked);
    for (const GlobalSequence sequence : missing) {
      if (result.examples.size() < most_examples) result.examples.push_back(sequence);
    }
    result.missing += request.mode == Mode::dry_run
                          ? static_cast<std::int64_t>(missing.size())
                          : operations.enqueue_missing(missing, request.who);
    if (more) all.report(request.progress, "reconcile", GlobalSequence{left.first.value() - 1});
  }
  result.miscounted = operations.mend_counts(request.mode, request.who);
  return result;
}

// --- partitions

namespace {

std::string labels(const std::vector<PartitionId>& partitions) {
  std::string text;
  for (const PartitionId partition : partitions) {
    if (!text.empty()) text += ", ";
    text += partition.label();
  }
  return text;
}

/// "added p02; retired p00".
std::string in_words(const Synced& synced) {
  std::string text;
  if (!synced.added.empty()) text = "added " + labels(synced.added);
  if (!synced.retired.empty()) {
    text.append(text.empty() ? "" : "; ").append("retired " + labels(synced.retired));
  }
  return text;
}

std::set<std::int64_t> parked_partitions(Connection& connection) {
  std::set<std::int64_t> parked;
  auto rows = connection.rows(sql::parked_partitions{});
  while (rows.step()) parked.insert(rows.partition());
  return parked;
}

/// Thrown to roll back a dry run.
struct DryRun {};

}  // namespace

Synced sync(Store& store, bool prune, Mode mode, std::string_view who) {
  Synced result;
  const Timestamp now = store.database().now();
  const auto work = [&](Connection& connection) {
    const Generation current = current_generation(connection);
    const std::set<std::int64_t> parked = parked_partitions(connection);
    std::vector<std::int64_t> known;
    {
      auto rows = connection.rows(sql::partitions{});
      while (rows.step()) known.push_back(rows.partition());
    }
    for (int index = 0; index < current.partition_count; ++index) {
      const PartitionId partition = PartitionId::at(index, current.partition_count);
      if (std::find(known.begin(), known.end(), partition.number) != known.end()) continue;
      connection.run(sql::insert_partition{.partition = partition.number});
      result.added.push_back(partition);
    }
    for (const std::int64_t number : known) {
      const PartitionId partition{static_cast<int>(number)};
      if (!prune || current.has(partition)) continue;
      if (parked.contains(number)) {
        result.parked.push_back(partition);
        continue;
      }
      if (connection.run(sql::retire{.partition = number, .now = now}) == 1) {
        result.retired.push_back(partition);
      }
    }
    if (const std::string detail = in_words(result); !detail.empty()) {
      connection.run(sql::insert_action{.at = now, .who = who, .what = "sync", .detail = detail});
    }
    if (mode == Mode::dry_run) throw DryRun{};
  };
  try {
    store.database().write(work);
  } catch (const DryRun&) {
    // The findings are still reported.
  }
  return result;
}

}  // namespace stela::outbox
