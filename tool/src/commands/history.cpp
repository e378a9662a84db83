// outbox history, projections history: past activity, a row for each minute or longer.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/detail/journal.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/projections/operations.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace stela::tool {
namespace {

using Minutes = std::chrono::minutes;
using Count = std::optional<std::int64_t>;

/// The figures of a span of time. Empty where they weren't recorded.
struct Span {
  Timestamp at;
  Count published = {};
  /// Rounded to hundredths.
  std::optional<double> per_s = {};
  /// How many of the published messages operators had sent again.
  Count sent_again = {};
  Count failed = {};
  Count taken_over = {};
  Count appended = {};
  Count pending = {};
  std::optional<std::chrono::microseconds> lag = {};
  Count parked = {};
  Count workers = {};
  Count unowned = {};
  Count stopped = {};
};

constexpr Field<Span> span_fields[] = {
    field<&Span::at>("at"),
    field<&Span::appended>("appended", {.absent = "-"}),
    field<&Span::published>("published", {.absent = "-"}),
    field<&Span::per_s>("published_per_second", {.title = "a second", .absent = "-"}),
    field<&Span::sent_again>("sent_again", {.absent = "-"}),
    field<&Span::failed>("failed", {.absent = "-"}),
    field<&Span::taken_over>("taken_over", {.absent = "-"}),
    field<&Span::pending>("pending", {.absent = "-"}),
    field<&Span::lag>("lag_s", {.title = "lag", .absent = "-"}),
    field<&Span::parked>("parked", {.absent = "-"}),
    field<&Span::workers>("workers", {.absent = "-"}),
    field<&Span::unowned>("without_owner", {.absent = "-"}),
    field<&Span::stopped>("stopped", {.absent = "-"}),
};
constexpr Description<Span> of_outbox{
    span_fields,
    {.table = "at appended published published_per_second failed pending lag_s parked workers "
              "stopped taken_over without_owner"}};
constexpr Description<Span> of_partition{span_fields,
                                         {.table = "at published published_per_second sent_again"}};

/// A span of a projector, reaction or process.
struct FollowerSpan {
  std::string projector;
  Timestamp at;
  Count handled = {};
  std::optional<double> per_s = {};
  std::optional<std::chrono::microseconds> lag = {};
};

constexpr Field<FollowerSpan> follower_fields[] = {
    field<&FollowerSpan::projector>("projector"),
    field<&FollowerSpan::at>("at"),
    field<&FollowerSpan::handled>("handled", {.absent = "-"}),
    field<&FollowerSpan::per_s>("handled_per_second", {.title = "a second", .absent = "-"}),
    field<&FollowerSpan::lag>("lag_s", {.title = "lag", .absent = "-"}),
};
constexpr Description<FollowerSpan> of_follower{
    follower_fields, {.table = "projector at handled handled_per_second lag_s"}};

/// The requested spans. The first begins at `from`.
struct Spans {
  Timestamp from;
  Timestamp to;
  Minutes by;

  std::vector<Span> make() const {
    std::vector<Span> all;
    for (Timestamp at = from; at < to; at += by) all.push_back({.at = at});
    return all;
  }
  std::optional<std::size_t> place_of(Timestamp at) const {
    if (at < from || at >= to) return {};
    return static_cast<std::size_t>((at - from) / by);
  }
};

/// The last value of each span.
std::vector<Count> last_values(const HistorySeries& series, const Spans& spans) {
  std::vector<Count> last(spans.make().size());
  for (const HistoryPoint& point : series.points) {
    if (const auto place = spans.place_of(point.at)) last[*place] = point.value;
  }
  return last;
}

/// The growth of a total in each span. A point has the value at the beginning of its minute, so
/// growth since the previous point belongs to the minute before. After a gap, it belongs to the
/// gap's last minute.
std::vector<Count> growth(const HistorySeries& series, const Spans& spans) {
  std::vector<Count> grown(spans.make().size());
  Count before;
  for (const HistoryPoint& point : series.points) {
    const Count last = std::exchange(before, point.value);
    const auto place = spans.place_of(point.at - Minutes{1});
    if (!last || !place) continue;
    grown[*place] = grown[*place].value_or(0) + std::max<std::int64_t>(point.value - *last, 0);
  }
  return grown;
}

std::optional<double> rate_of(const Count& count, Minutes by) {
  if (!count) return {};
  const double seconds = std::chrono::duration<double>{by}.count();
  return std::round(100 * static_cast<double>(*count) / seconds) / 100;
}

void set_rates(std::vector<Span>& spans, Minutes by) {
  for (Span& span : spans) span.per_s = rate_of(span.published, by);
}

/// Also reads the value before the first span.
std::vector<HistorySeries> read_series(Store& store, const Spans& spans) {
  return Journal{store}.history(spans.from - std::max(spans.by, Minutes{60}), spans.to);
}

std::vector<Span> read_history(Store& store, const Spans& spans) {
  constexpr std::pair<std::string_view, Count Span::*> totals[] = {
      {"store.head_total", &Span::appended},
      {"outbox.published_total", &Span::published},
      {"outbox.failed_total", &Span::failed},
      {"outbox.taken_over_total", &Span::taken_over}};
  constexpr std::pair<std::string_view, Count Span::*> values[] = {
      {"outbox.pending", &Span::pending},
      {"outbox.parked", &Span::parked},
      {"outbox.workers", &Span::workers},
      {"outbox.unowned", &Span::unowned},
      {"outbox.stopped", &Span::stopped}};
  std::vector<Span> all = spans.make();
  const auto fill = [&](Count Span::*member, const std::vector<Count>& from) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].*member = from[i];
  };
  for (const HistorySeries& one : read_series(store, spans)) {
    for (const auto& [name, member] : totals) {
      if (one.name == name) fill(member, growth(one, spans));
    }
    for (const auto& [name, member] : values) {
      if (one.name == name) fill(member, last_values(one, spans));
    }
    if (one.name != "outbox.lag_ms") continue;
    const std::vector<Count> lags = last_values(one, spans);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (lags[i]) all[i].lag = std::chrono::milliseconds{*lags[i]};
    }
  }
  set_rates(all, spans.by);
  return all;
}

/// Reads the log of batches.
std::vector<Span> read_history_of(OutboxOperations& outbox, PartitionId partition,
                                  const Spans& spans, Output& out) {
  constexpr int most_batches = 100'000;
  std::vector<Span> all = spans.make();
  const auto batches = outbox.batches(partition, most_batches);
  const bool is_cut = std::ssize(batches) == most_batches;
  // Batches before the oldest one may have been removed from the log.
  const Timestamp known_from = batches.empty() ? spans.to : batches.back().published_at;
  if (is_cut && known_from > spans.from) {
    out.note("only the last " + in_digits(most_batches) + " batches are counted, from " +
             to_string(known_from) + " on");
  }
  for (Span& span : all) {
    if (span.at + spans.by > known_from) span.published = span.sent_again = 0;
  }
  for (const PublishedBatch& batch : batches) {
    if (const auto place = spans.place_of(batch.published_at)) {
      Span& span = all[*place];
      span.published = span.published.value_or(0) + batch.count;
      if (batch.redelivery > 0) span.sent_again = span.sent_again.value_or(0) + batch.count;
    }
  }
  set_rates(all, spans.by);
  return all;
}

Minutes minutes_asked(const Arguments& arguments, std::string_view option, Minutes otherwise) {
  const auto text = arguments.text(option);
  if (!text) return otherwise;
  const auto duration = parse_duration(*text);
  if (!duration) throw Misuse{not_a_duration(option, *text)};
  const auto minutes = std::chrono::floor<Minutes>(*duration);
  if (minutes < Minutes{1}) throw Misuse{std::string{option} + " is at least 1m"};
  return minutes;
}

void require_partition(OutboxOperations& outbox, PartitionId partition) {
  for (const PartitionStatus& one : outbox.status().partitions) {
    if (one.id == partition) return;
  }
  throw Exit{not_found, "there is no partition " + partition.label()};
}

constexpr std::int64_t most_rows = 10'000;

Spans spans_asked(const Arguments& arguments, Store& store) {
  const Minutes since = minutes_asked(arguments, "--since", Minutes{60});
  const Minutes by = minutes_asked(arguments, "--by", Minutes{1});
  if (since / by > most_rows) {
    throw Misuse{"that would be more than " + in_digits(most_rows) + " rows; use a longer --by"};
  }
  const Timestamp now = store.conventions().clock->now();
  const Timestamp to = std::chrono::floor<Minutes>(now) + Minutes{1};
  return {.from = to - since, .to = to, .by = by};
}

/// Reads the figures that runners recorded of their projectors.
std::vector<FollowerSpan> read_history_of(const std::string& projector,
                                          const std::vector<HistorySeries>& series,
                                          const Spans& spans) {
  std::vector<FollowerSpan> all;
  for (const Span& span : spans.make()) all.push_back({.projector = projector, .at = span.at});
  for (const HistorySeries& one : series) {
    const bool is_position = one.name == projector + ".position_total";
    if (!is_position && one.name != projector + ".lag_ms") continue;
    const std::vector<Count> values = is_position ? growth(one, spans) : last_values(one, spans);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_position) {
        all[i].handled = values[i];
        all[i].per_s = rate_of(values[i], spans.by);
      } else if (values[i]) {
        all[i].lag = std::chrono::milliseconds{*values[i]};
      }
    }
  }
  return all;
}

/// The projectors with recorded figures, or the one that was named.
std::vector<std::string> projectors_asked(const Arguments& arguments, Store& store,
                                          const std::vector<HistorySeries>& series) {
  const auto& operands = arguments.operands();
  std::vector<std::string> names;
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    if (one.state != BuildState::living) continue;
    const bool is_noted = std::any_of(series.begin(), series.end(), [&](const HistorySeries& each) {
      return each.name == one.name + ".position_total";
    });
    if (operands.empty() ? is_noted : one.name == operands.front()) names.push_back(one.name);
  }
  if (names.empty() && !operands.empty()) {
    throw NotFound{"projector '" + in_one_line(operands.front()) + "' isn't in this database"};
  }
  return names;
}

int show_history_of_projectors(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  const Spans spans = spans_asked(call.arguments, session.store());
  const auto series = read_series(session.store(), spans);
  const auto names = projectors_asked(call.arguments, session.store(), series);
  if (std::ssize(names) * std::ssize(spans.make()) > most_rows) {
    throw Misuse{"those of all would be more than " + in_digits(most_rows) +
                 " rows; name one, or use a longer --by"};
  }
  Listing listing{call.out, of_follower};
  for (const std::string& name : names) {
    for (const FollowerSpan& span : read_history_of(name, series, spans)) listing.add(span);
  }
  listing.print();
  return done;
}

int show_history(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  const Spans spans = spans_asked(call.arguments, session.store());
  if (const auto partition = call.arguments.text("--partition")) {
    require_partition(session.operations(), to_partition(*partition));
    print_list(call.out, of_partition,
               read_history_of(session.operations(), to_partition(*partition), spans, call.out));
  } else {
    print_list(call.out, of_outbox, read_history(session.store(), spans));
  }
  return done;
}

constexpr Option back_option{"--since", "DURATION", "how far back (default 1h)"};
constexpr Option by_option{"--by", "DURATION", "how long a row is (default 1m)"};

}  // namespace

Command projections_history_command() {
  return {
      .path = "projections history",
      .summary = "Show how much projectors handled, and their lag, minute by minute",
      .about =
          "Runners note figures each minute, of the projectors, reactions and processes "
          "that they drive. Of others there is no row. What was handled is how far the position "
          "moved: events that a projector passes over count, too. They are kept as those of "
          "the outbox are. Where nobody looked, there is '-', and what was handled in such a "
          "gap counts in its last minute.",
      .operands = {{"NAME", "only this projector", false, false, "@projectors"}},
      .options = {db_option, back_option, by_option},
      .examples = {{"the last hour", "projections history sales_per_day"}},
      .run = show_history_of_projectors};
}

Command history_command() {
  return {
      .path = "outbox history",
      .summary = "Show how much was published, and what waited, minute by minute",
      .about =
          "Workers note figures each minute. They are kept for 7 days, and one an hour for 90. "
          "Where nobody looked, there is '-'. What was published in such a gap counts in its last "
          "minute. How much was published in the minute that isn't over isn't known yet. An event "
          "counts as published once; the figures of one partition count what was retried or "
          "republished, too, and say "
          "how much of it that is.",
      .options = {db_option,
                  back_option,
                  by_option,
                  {"--partition", "PARTITION", "only this one, by the log of batches"}},
      .examples = {{"the last hour", "outbox history"},
                   {"the last day, by the quarter hour", "outbox history --since 24h --by 15m"}},
      .run = show_history};
}

}  // namespace stela::tool
