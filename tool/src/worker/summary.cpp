#include "worker/summary.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "worker/partition_table.hpp"
#include "worker/problems.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace stela::tool {
namespace {

/// From this height on there is room for the particulars.
constexpr std::size_t roomy = 20;

Line item(std::string_view name, const std::string& value, Style style = Style::plain) {
  return {{std::string{name} + ' ', Style::dim}, {value, style}};
}

/// In its style if it is something.
Line count(std::string_view name, std::int64_t value, Style style = Style::plain) {
  return item(name, in_digits(value), value > 0 ? style : Style::plain);
}

Style style_of_state(const std::string& state) {
  if (state == "relaying" || state == "idle") return Style::good;
  const bool is_bad = state == "broker down" || state == "misconfigured" || state == "stopped";
  return is_bad ? Style::bad : Style::warning;
}

/// The problems say why.
std::string broker_in_short(const OwnWork& own) {
  return std::string{to_string(own.done.broker.value_or(BrokerStatus{}).state)};
}

Line broker_item(const OwnWork& own) {
  const bool is_connected = own.done.broker && own.done.broker->is_connected();
  return item("broker", broker_in_short(own), is_connected ? Style::good : Style::bad);
}

Line database_item(const View& view) {
  return view.store_problem.empty() ? item("database", "answers", Style::good)
                                    : item("database", "fails", Style::bad);
}

std::string rate_in_words(double rate) {
  return in_digits(std::llround(rate)) + "/s";
}

/// When nothing waits any more, as far as can be told.
Line drain_item(const View& view) {
  if (view.pace.time_to_drain) return item("drains in", in_words(*view.pace.time_to_drain));
  if (view.pace.growth >= 1) {
    return item("backlog grows by", rate_in_words(view.pace.growth), Style::warning);
  }
  return item("drains in", "-");
}

std::string next_retry(const View& view) {
  std::optional<Timestamp> next;
  for (const PartitionStatus& each : view.status.partitions) {
    if (each.next_attempt_at)
      next = std::min(next.value_or(Timestamp::max()), *each.next_attempt_at);
  }
  if (!next) return "-";
  return *next > view.status.at ? "in " + in_words(*next - view.status.at) : "now";
}

std::string oldest(const OutboxStatus& status) {
  return status.lag ? in_words(*status.lag) : "-";
}

std::vector<Line> state_items(const View& view) {
  std::vector<Line> items;
  if (view.own) {
    const OwnWork& own = *view.own;
    items.push_back({{own.state, style_of_state(own.state)}});
    items.push_back(broker_item(own));
    items.push_back(database_item(view));
    items.push_back(item("wanted", in_digits(own.done.wanted)));
    items.push_back(item(
        "owned", in_digits(own.done.owned) + " of " + in_digits(needed_partitions(view.status))));
    items.push_back(item("workers", in_digits(own.done.active_workers)));
    items.push_back(item("worker", in_one_line(own.worker)));
    return items;
  }
  const LivingWorkers living = living_workers(view.status);
  items.push_back(database_item(view));
  items.push_back(
      item("live workers", in_digits(living.all), living.all > 0 ? Style::good : Style::warning));
  if (living.cut_off > 0) items.push_back(count("cut off", living.cut_off, Style::bad));
  items.push_back(item("partitions", in_digits(needed_partitions(view.status))));
  return items;
}

std::vector<Line> backlog_items(const View& view) {
  const OutboxStatus& status = view.status;
  std::vector<Line> items{item("pending", waiting_in_words(status), Style::bold),
                          count("in flight", status.in_flight),
                          count("retrying", status.retrying, Style::warning),
                          count("parked", status.parked, Style::warning)};
  if (status.stopped > 0) items.push_back(count("stopped", status.stopped, Style::bad));
  items.push_back(item("oldest", oldest(status)));
  items.push_back(drain_item(view));
  items.push_back(item("next retry", next_retry(view)));
  items.push_back(item("published", rate_in_words(view.pace.published) + ", " +
                                        in_digits(status.published) + " ever"));
  return items;
}

/// From commit to publication.
std::string latency_in_words(const Figures& done) {
  if (!done.latency_p50) return "-";
  return in_words(*done.latency_p50) + " / " + in_words(*done.latency_p99);
}

std::vector<Line> own_items(const OwnWork& own) {
  const Figures& done = own.done;
  const Totals& totals = done.totals;
  const bool has_window = own.window.count() > 0;
  std::vector<Line> items{
      {{has_window ? "last " + in_words(own.window) + ":" : "last tick:", Style::bold}},
      count("claimed", totals.claimed),
      count("published", totals.published, Style::good),
      count("retried", totals.retried, Style::warning),
      count("parked", totals.parked, Style::bad)};
  if (totals.leased > 0) items.push_back(count("leased", totals.leased));
  if (totals.released > 0) items.push_back(count("released", totals.released));
  if (totals.purged_stale > 0) items.push_back(count("purged", totals.purged_stale));
  items.push_back(item("ticks", in_digits(has_window ? done.ticks : done.ticks_ever)));
  items.push_back(item(has_window ? "mean" : "took", in_words(done.mean_duration)));
  items.push_back(item("back-off", in_words(done.last_backoff)));
  items.push_back(item("heartbeat", in_words(done.heartbeat_age) + " ago"));
  items.push_back(item("latency p50/p99", latency_in_words(done)));
  items.push_back(item("this run", in_digits(done.ever.published) + " published"));
  return items;
}

/// One character for each five seconds, as tall as its share of the most.
Line sparkline(const std::array<std::int64_t, 60>& values, std::size_t width) {
  constexpr std::array bars{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t shown = std::min(values.size(), width > 12 ? width - 12 : width);
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(shown);
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(begin, values.end()));
  std::string text;
  for (auto at = begin; at != values.end(); ++at) {
    text += bars[static_cast<std::size_t>((*at * 8 + most - 1) / most)];
  }
  const std::int64_t rate = (most + slot_length.count() - 1) / slot_length.count();
  return {{text, Style::good}, {" ≤" + in_digits(rate) + "/s", Style::dim}};
}

}  // namespace

Block summary(const View& view, std::size_t width, std::size_t height) {
  Block block = flowing(state_items(view), width);
  append(block, flowing(backlog_items(view), width));
  if (!view.own || height < roomy) return block;
  append(block, flowing(own_items(*view.own), width));
  block.push_back(sparkline(view.own->done.per_slot, width));
  return block;
}

Block short_summary(const View& view, std::size_t width) {
  const OutboxStatus& status = view.status;
  std::vector<Line> items;
  if (view.own) {
    items.push_back({{view.own->state, style_of_state(view.own->state)}});
    items.push_back({{"broker " + broker_in_short(*view.own)}});
  }
  Block block = flowing(items, width);
  if (!view.store_problem.empty()) {
    block.push_back({{"database " + in_one_line(view.store_problem), Style::bad}});
  }
  append(block, flowing(std::array{Line{{"pending " + waiting_in_words(status)}},
                                   Line{{"oldest " + oldest(status)}}, drain_item(view)},
                        width));
  items = {{{"parked " + in_digits(status.parked)}}, {{"retrying " + in_digits(status.retrying)}}};
  if (status.stopped > 0) items.push_back(count("stopped", status.stopped, Style::bad));
  if (view.own) {
    items.push_back({{"owned " + in_digits(view.own->done.owned) + " of " +
                      in_digits(needed_partitions(status))}});
    items.push_back({{"workers " + in_digits(view.own->done.active_workers)}});
    items.push_back({{"this run " + in_digits(view.own->done.ever.published) + " published"}});
  }
  append(block, flowing(items, width));
  return block;
}

}  // namespace stela::tool
