#include <stela/eventstore/operations.hpp>
#include <stela/framework/error.hpp>

#include "database/database.hpp"
#include "operations_sql/catalogue.hpp"
#include "schema_requirement.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace stela {
namespace {

using database::Connection;
namespace sql = operations::sql;

/// The number of events that one statement reads: a few milliseconds' worth.
constexpr std::int64_t step_size = 50'000;

StreamId name_of(std::string_view name) try {
  return StreamId::parse(name);
} catch (const UsageError& e) {
  throw CorruptEvent{std::string{"the table of streams has a name that isn't one: "} + e.what()};
}

/// Runs a statement for names within bounds, and passes each row to `take`.
template <class Statement, class Take>
void for_each_name(Store& store, const StreamListing& which, Take take) {
  if (!which.category.empty() && !is_valid_category(which.category)) {
    throw UsageError{"'" + which.category +
                     "' isn't a category: a-z, 0-9 and _, the first a letter"};
  }
  // '.' is the character after '-', so the two enclose the names of a category.
  const std::string begin = which.category.empty() ? "" : which.category + "-";
  const std::string end = which.category.empty() ? "\x7f" : which.category + ".";
  store.database().read([&](Connection& connection) {
    auto rows = connection.rows(
        Statement{.begin = begin, .end = end, .after = which.after, .limit = which.limit});
    while (rows.step()) take(rows);
  });
}

}  // namespace

std::vector<StreamEntry> StoreOperations::list_streams(const StreamListing& which) {
  std::vector<StreamEntry> entries;
  for_each_name<sql::list_streams>(store_, which, [&](const auto& row) {
    entries.push_back({name_of(row.name()), StreamVersion{row.version()},
                       GlobalSequence{row.sequence()}, row.recorded_at()});
  });
  return entries;
}

std::vector<SnapshotEntry> StoreOperations::list_snapshots(const StreamListing& which) {
  std::vector<SnapshotEntry> entries;
  for_each_name<sql::list_snapshots>(store_, which, [&](const auto& row) {
    entries.push_back({name_of(row.name()), StreamVersion{row.version()},
                       GlobalSequence{row.sequence()}, static_cast<int>(row.state_version()),
                       row.taken_at(), row.payload_bytes()});
  });
  return entries;
}

std::vector<KindCount> StoreOperations::count_events(const CountOptions& options) {
  std::map<std::int64_t, KindCount> counts;
  const std::int64_t last = store_.last_sequence().value();
  for (std::int64_t from = options.from.value(); from <= last; from += step_size) {
    if (options.stop.stop_requested()) return {};
    store_.database().read([&](Connection& connection) {
      auto rows = connection.rows(
          sql::count_events{.from = from, .to = std::min(last, from + step_size - 1)});
      while (rows.step()) {
        KindCount& count = counts[rows.kind()];
        if (count.events == 0) count.first = GlobalSequence{rows.first()};
        count.events += rows.events();
        count.payload_bytes += rows.payload_bytes();
        count.last = GlobalSequence{rows.last()};
      }
    });
    if (options.progress) {
      options.progress({"counting", std::min(last, from + step_size - 1), last});
    }
  }
  std::vector<KindCount> kinds;
  store_.database().read([&](Connection& connection) {
    auto rows = connection.rows(sql::kinds{});
    while (rows.step()) {
      if (!options.lists_all && !counts.contains(rows.kind())) continue;
      KindCount& count = counts[rows.kind()];
      count.category = rows.category();
      count.type = rows.type();
      count.version = static_cast<int>(rows.version());
      count.publishes = rows.publishes();
      kinds.push_back(std::move(count));
    }
  });
  return kinds;
}

GlobalSequence StoreOperations::find_time(Timestamp time) {
  std::int64_t low = 0;
  std::int64_t high = store_.last_sequence().value() + 1;
  store_.database().read([&](Connection& connection) {
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      auto row = connection.rows(sql::recorded_time{.from = middle, .to = high - 1});
      const bool is_before = row.step() && row.recorded_at() < time;
      (is_before ? low : high) = is_before ? row.sequence() : middle;
    }
  });
  return GlobalSequence{high};
}

std::vector<RequiredParticipant> StoreOperations::required_participants() {
  std::vector<RequiredParticipant> required;
  store_.database().read([&](Connection& connection) {
    auto rows = connection.rows(sql::participants{});
    while (rows.step()) {
      if (SchemaRequirement::parse(rows.name())) continue;
      required.push_back(
          {std::string{rows.name()}, std::string{rows.detail()}, rows.registered_at()});
    }
  });
  return required;
}

}  // namespace stela
