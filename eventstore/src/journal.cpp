#include <stela/eventstore/detail/journal.hpp>

#include "database/database.hpp"
#include "database/host.hpp"
#include "database/journal.hpp"
#include "operations_sql/journal.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <map>

namespace stela {

using database::Connection;
namespace sql = operations::sql;

namespace {

constexpr std::chrono::days kept_for{90};
constexpr std::int64_t most_changes = 100'000;
constexpr std::int64_t most_series = 40;
constexpr std::int64_t minutes_kept = std::int64_t{7} * 24 * 60;
constexpr std::int64_t hours_kept = std::int64_t{90} * 24 * 60;

bool has_journal(Connection& connection) {
  auto found = connection.rows(sql::has_journal{});
  return found.step() && found.is_there();
}

std::map<std::string, std::int64_t, std::less<>> all_series(Connection& connection) {
  std::map<std::string, std::int64_t, std::less<>> all;
  auto rows = connection.rows(sql::series{});
  while (rows.step()) all.emplace(rows.name(), rows.series());
  return all;
}

/// Covers the time since the last sample, in case nobody thinned it out meanwhile.
void thin(Connection& connection, std::int64_t series, std::int64_t last, std::int64_t minute) {
  connection.run(sql::thin_samples{
      .series = series, .after = last - minutes_kept - 1, .through = minute - minutes_kept - 1});
  connection.run(sql::drop_samples{.series = series, .through = minute - hours_kept - 1});
}

std::int64_t last_minute(Connection& connection, std::int64_t series) {
  auto row = connection.rows(sql::last_minute{.series = series});
  row.step();
  return row.minute();
}

}  // namespace

// --- writing

void database::note(Connection& connection, Timestamp at, const StateChange& change) {
  connection.run(sql::insert_change{.at = at,
                                    .part = change.part,
                                    .subject = change.subject,
                                    .what = change.what,
                                    .who = change.who,
                                    .detail = change.detail});
  connection.run(sql::trim_changes{.old_before = at - kept_for, .most = most_changes});
}

void database::note(Connection& connection, Timestamp at, const Takeover& takeover) {
  std::string detail = "from '";
  detail.append(takeover.from).append("' to '").append(takeover.to).append("'");
  note(connection, at,
       StateChange{.part = takeover.part,
                   .subject = takeover.subject,
                   .what = "taken over",
                   .detail = detail});
}

std::int64_t database::minute_of(Timestamp at) noexcept {
  return std::chrono::floor<std::chrono::minutes>(at.time_since_epoch()).count();
}

void database::sample(Connection& connection, Timestamp at, std::span<const Sample> samples) {
  const std::int64_t minute = minute_of(at);
  auto known = all_series(connection);
  for (const Sample& each : samples) {
    if (!known.contains(each.name)) {
      connection.run(sql::insert_series{.name = each.name, .most = most_series});
      known = all_series(connection);
    }
    const auto series = known.find(each.name);
    if (series == known.end()) continue;
    const std::int64_t last = last_minute(connection, series->second);
    if (last >= minute) continue;
    connection.run(
        sql::insert_sample{.series = series->second, .minute = minute, .value = each.value});
    thin(connection, series->second, last, minute);
  }
}

// --- reading

std::vector<JournalEntry> Journal::entries(const JournalQuery& query) {
  if (query.limit < 1) throw UsageError{"limit must be 1 or more"};
  std::vector<JournalEntry> all;
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!has_journal(connection)) return;
    const auto add = [&](const auto& statement) {
      auto rows = connection.rows(statement);
      while (rows.step()) {
        all.push_back({.number = rows.change(),
                       .at = rows.at(),
                       .part = std::string{rows.part()},
                       .subject = std::string{rows.subject()},
                       .what = std::string{rows.what()},
                       .who = std::string{rows.who()},
                       .detail = std::string{rows.detail()}});
      }
    };
    if (query.direction == Direction::backward) {
      add(sql::list_changes{.after = query.after, .before = query.before, .most = query.limit});
    } else {
      add(sql::list_changes_forward{
          .after = query.after, .before = query.before, .most = query.limit});
    }
  });
  return all;
}

void Journal::note(const JournalEntry& entry) {
  if (entry.who.empty() || entry.part.empty() || entry.what.empty()) {
    throw UsageError{"an entry of the journal needs who, part and what"};
  }
  const Timestamp now = store_.database().now();
  store_.database().write([&](Connection& connection) {
    database::note(connection, now,
                   database::StateChange{.part = entry.part,
                                         .subject = entry.subject,
                                         .what = entry.what,
                                         .who = entry.who,
                                         .detail = entry.detail});
  });
}

void Journal::acknowledge(const Acknowledgement& known) {
  if (known.code.empty()) throw UsageError{"an acknowledgement needs the code of a finding"};
  if (known.why.empty()) throw UsageError{"an acknowledgement needs a reason"};
  const Timestamp now = store_.database().now();
  if (known.until <= now) throw UsageError{"an acknowledgement must end later than now"};
  const std::string who = known.who.empty() ? host::user() : known.who;
  store_.database().write([&](Connection& connection) {
    connection.run(sql::delete_old_acknowledgements{.now = now});
    connection.run(sql::upsert_acknowledgement{.code = known.code,
                                               .subject = known.subject,
                                               .severity = known.severity,
                                               .amount = known.amount,
                                               .who = who,
                                               .why = known.why,
                                               .at = now,
                                               .until = known.until});
    database::note(connection, now,
                   database::StateChange{.part = "findings",
                                         .subject = known.subject,
                                         .what = "acknowledged",
                                         .who = who,
                                         .detail = known.code + ": " + known.why});
  });
}

bool Journal::withdraw(std::string_view code, std::string_view subject) {
  bool is_gone = false;
  store_.database().write([&](Connection& connection) {
    is_gone = connection.run(sql::delete_acknowledgement{.code = code, .subject = subject}) == 1;
    if (!is_gone) return;
    database::note(connection, store_.database().now(),
                   database::StateChange{.part = "findings",
                                         .subject = subject,
                                         .what = "not known any more",
                                         .who = host::user(),
                                         .detail = code});
  });
  return is_gone;
}

std::vector<Acknowledgement> Journal::acknowledgements() {
  std::vector<Acknowledgement> all;
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!has_journal(connection)) return;
    const Timestamp now = store_.database().now();
    auto rows = connection.rows(sql::acknowledgements{});
    while (rows.step()) {
      if (rows.until() <= now) continue;
      all.push_back({.code = std::string{rows.code()},
                     .subject = std::string{rows.subject()},
                     .severity = std::string{rows.severity()},
                     .amount = rows.amount(),
                     .who = std::string{rows.who()},
                     .why = std::string{rows.why()},
                     .at = rows.at(),
                     .until = rows.until()});
    }
  });
  return all;
}

std::vector<HistorySeries> Journal::history(Timestamp from, Timestamp to) {
  std::vector<HistorySeries> all;
  store_.database().read_snapshot([&](Connection& connection) {
    all.clear();
    if (!has_journal(connection)) return;
    for (const auto& [name, series] : all_series(connection)) {
      HistorySeries& one = all.emplace_back(HistorySeries{.name = name});
      auto rows = connection.rows(sql::samples{
          .series = series, .from = database::minute_of(from), .to = database::minute_of(to)});
      while (rows.step()) {
        one.points.push_back({Timestamp{std::chrono::minutes{rows.minute()}}, rows.value()});
      }
    }
  });
  return all;
}

}  // namespace stela
