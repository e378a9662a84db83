// outbox history: how things went, a row for each minute or longer.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/journal.hpp>

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

/// What is known of a span of time. Nothing where nobody looked.
struct Span {
  Timestamp at;
  Count published = {};
  /// To hundredths.
  std::optional<double> per_s = {};
  /// Of those published, what operators sent again.
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

/// Which spans are asked for: the first begins at `from`.
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

/// By how much a total grew. A point has the value at the beginning of its minute, so that what
/// came since the point before belongs to the minute before. After a gap, that is the gap's last
/// one.
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

void set_rates(std::vector<Span>& spans, Minutes by) {
  const double seconds = std::chrono::duration<double>{by}.count();
  for (Span& span : spans) {
    if (span.published) {
      span.per_s = std::round(100 * static_cast<double>(*span.published) / seconds) / 100;
    }
  }
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
  // With the value before the first span.
  for (const HistorySeries& one :
       Journal{store}.history(spans.from - std::max(spans.by, Minutes{60}), spans.to)) {
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

/// By the log of batches.
std::vector<Span> read_history_of(OutboxOperations& outbox, PartitionId partition,
                                  const Spans& spans, Output& out) {
  constexpr int most_batches = 100'000;
  std::vector<Span> all = spans.make();
  const auto batches = outbox.batches(partition, most_batches);
  const bool is_cut = std::ssize(batches) == most_batches;
  // What was before the oldest one may have been removed from the log.
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

int show_history(Invocation& call) {
  const Minutes since = minutes_asked(call.arguments, "--since", Minutes{60});
  const Minutes by = minutes_asked(call.arguments, "--by", Minutes{1});
  constexpr std::int64_t most_rows = 10'000;
  if (since / by > most_rows) {
    throw Misuse{"that would be more than " + in_digits(most_rows) + " rows; use a longer --by"};
  }
  StoreSession session{call, {.only_reads = true}};
  const Timestamp now = session.store().conventions().clock->now();
  const Timestamp to = std::chrono::floor<Minutes>(now) + Minutes{1};
  const Spans spans{.from = to - since, .to = to, .by = by};
  if (const auto partition = call.arguments.text("--partition")) {
    require_partition(session.operations(), to_partition(*partition));
    print_list(call.out, of_partition,
               read_history_of(session.operations(), to_partition(*partition), spans, call.out));
  } else {
    print_list(call.out, of_outbox, read_history(session.store(), spans));
  }
  return done;
}

}  // namespace

Command history_command() {
  return {
      .path = "outbox history",
      .summary = "Show how much was published, and what waited, minute by minute",
      .about =
          "Workers note figures each minute. They are kept for 7 days, and one an hour for 90. "
          "Where nobody looked, there is '-'. What was published in such a gap counts in its last "
          "minute. Of the minute that isn't over nothing is known yet. An event counts as "
          "published "
          "once; the figures of one partition count what was retried or republished, too, and say "
          "how much of it that is.",
      .options = {db_option,
                  {"--since", "DURATION", "how far back (default 1h)"},
                  {"--by", "DURATION", "how long a row is (default 1m)"},
                  {"--partition", "PARTITION", "only this one, by the log of batches"}},
      .examples = {{"the last hour", "outbox history"},
                   {"the last day, by the quarter hour", "outbox history --since 24h --by 15m"}},
      .run = show_history};
}

}  // namespace stela::tool
