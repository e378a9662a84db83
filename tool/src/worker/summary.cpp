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

Cell count(std::string_view name, std::int64_t value, Style style = Style::bold) {
  return {name, in_digits(value), value > 0 ? style : Style::plain};
}

Style style_of_state(const std::string& state) {
  if (state == "relaying" || state == "idle") return Style::good;
  const bool is_bad = state == "broker down" || state == "misconfigured" || state == "stopped";
  return is_bad ? Style::bad : Style::warning;
}

/// The problems give the reason.
Cell broker_cell(const OwnWork& own) {
  const BrokerStatus broker = own.done.broker.value_or(BrokerStatus{});
  return {"broker", std::string{to_string(broker.state)},
          broker.is_connected() ? Style::good : Style::bad};
}

Cell database_cell(const View& view) {
  if (view.store_problem.empty()) return {"database", "answers", Style::good};
  return {"database", view.is_stale ? "down" : "fails", Style::bad};
}

/// At most six columns wide.
std::string rate_in_words(std::optional<double> rate) {
  if (!rate) return "-";
  if (*rate >= 100'000) return in_digits(std::llround(*rate / 1'000)) + "k";
  if (*rate >= 10 || *rate == 0) return in_digits(std::llround(*rate));
  if (*rate < 0.1) return "<0.1";
  std::string tenths = std::to_string(std::llround(*rate * 10));
  return tenths.size() < 2 ? "0." + tenths : tenths.insert(tenths.size() - 1, ".");
}

/// The estimated time at which nothing is pending any more.
Cell drain_cell(const View& view) {
  // Publications of a minute ago mustn't hide a standstill.
  const bool stands = view.throughput.now == 0.0;
  if (view.pace.time_to_drain && !stands) {
    return {"drains in", in_words(*view.pace.time_to_drain)};
  }
  if (view.pace.growth >= 1) {
    return {"backlog", "grows " + rate_in_words(view.pace.growth) + "/s", Style::warning};
  }
  return {"drains in", "-", Style::plain};
}

std::string next_retry(const View& view) {
  std::optional<Timestamp> next;
  for (const PartitionStatus& each : view.status.partitions) {
    if (each.next_attempt_at)
      next = std::min(next.value_or(Timestamp::max()), *each.next_attempt_at);
  }
  if (!next) return "-";
  return *next > view.status.at ? in_words(*next - view.status.at) : "now";
}

/// The most important cells come first.
std::vector<Cell> summary_cells(const View& view, bool is_roomy) {
  const OutboxStatus& status = view.status;
  const LivingWorkers living = living_workers(status);
  std::vector<Cell> cells;
  if (view.own) {
    cells.push_back({"state", view.own->state, style_of_state(view.own->state)});
    cells.push_back(broker_cell(*view.own));
  }
  cells.push_back({"pending", waiting_in_words(status)});
  cells.push_back({"oldest", status.lag ? in_words(*status.lag) : "-"});
  cells.push_back(count("parked", status.parked, Style::warning));
  cells.push_back(drain_cell(view));
  const std::int64_t workers = view.own ? view.own->done.active_workers : living.all;
  const bool is_served = view.own ? workers > 0 : workers > living.cut_off;
  cells.push_back({"workers", in_digits(workers), is_served ? Style::good : Style::warning});
  if (view.own) {
    const std::string needed = in_digits(needed_partitions(status));
    cells.push_back({"owned", in_digits(view.own->done.owned) + " of " + needed});
    cells.push_back(count("this run", view.own->done.ever.published));
  } else {
    cells.push_back(count("cut off", living.cut_off, Style::bad));
  }
  cells.push_back(database_cell(view));
  cells.push_back(count("stopped", status.stopped, Style::bad));
  cells.push_back(count("retrying", status.retrying, Style::warning));
  cells.push_back(count("published", status.published));
  cells.push_back(count("in flight", status.in_flight));
  if (is_roomy) cells.push_back({"retry in", next_retry(view), Style::plain});
  if (!view.own || !is_roomy) return cells;
  const Figures& done = view.own->done;
  const auto latency = [](const auto& time) { return time ? in_words(*time) : "-"; };
  cells.push_back({"latency", latency(done.latency_p50), Style::plain});
  cells.push_back({"of 99 %", latency(done.latency_p99), Style::plain});
  cells.push_back({"mean tick", in_words(done.mean_duration), Style::plain});
  cells.push_back({"back-off", in_words(done.last_backoff), Style::plain});
  return cells;
}

constexpr std::size_t name_width = 9;
constexpr std::size_t rate_width = 6;

/// A name, followed by cells that are aligned with the rows above.
Line rate_row(std::string_view name, const std::vector<std::string>& cells, Style style) {
  std::string text;
  for (const std::string& cell : cells) text += ' ' + on_the_right(cell, rate_width);
  return {{on_the_left(name, name_width)}, {std::move(text), style}};
}

Line rate_row(std::string_view name, std::string sum, const Speed& speed) {
  std::vector<std::string> cells{std::move(sum)};
  for (const auto& rate : speed) cells.push_back(rate_in_words(rate));
  return rate_row(name, cells, Style::bold);
}

std::string in_short(std::int64_t sum) {
  return sum < 100'000 ? in_digits(sum) : rate_in_words(static_cast<double>(sum));
}

/// Bars relative to the maximum, and a dot where nothing is known.
Line bars(const Throughput& throughput, double most) {
  constexpr std::array levels{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (const std::optional<double>& piece : throughput.curve) {
    const double share = most > 0 ? std::clamp(piece.value_or(0) / most, 0.0, 1.0) : 0;
    text += piece ? levels[static_cast<std::size_t>(std::ceil(share * 7))] : "·";
  }
  return {{"60 min "}, {text, Style::good}};
}

}  // namespace

Block summary(const View& view, std::size_t width, bool is_roomy) {
  Block block{title("Summary", width)};
  append(block, grid(summary_cells(view, is_roomy), width));
  return block;
}

Block throughput(const View& view, std::size_t width) {
  const Throughput& seen = view.throughput;
  const auto window = view.own ? view.own->window.count() : 0;
  const std::string sum = window > 0 ? "in " + std::to_string(window) + "s" : "1 tick";
  Block block{title("Throughput, per second", width),
              rate_row("", {view.own ? sum : "", "1 min", "5 min", "60 min"}, Style::plain)};
  if (view.own) {
    const Totals& own = view.own->done.totals;
    const auto& speeds = seen.speeds;
    block.push_back(rate_row("claimed", in_short(own.claimed), speeds[Throughput::claimed]));
    block.push_back(rate_row("published", in_short(own.published), speeds[Throughput::published]));
    block.push_back(
        rate_row("failed", in_short(own.retried + own.parked), speeds[Throughput::failed]));
  }
  block.push_back(rate_row(view.own ? "by all" : "published", "", seen.speeds[Throughput::all]));
  double most = seen.now.value_or(0);
  for (const auto& piece : seen.curve) most = std::max(most, piece.value_or(0));
  block.push_back({{"published   now"},
                   {on_the_right(rate_in_words(seen.now), 1 + rate_width), Style::bold},
                   {"    most"},
                   {on_the_right(rate_in_words(most), 1 + rate_width), Style::bold}});
  block.push_back(bars(seen, most));
  return block;
}

Block short_summary(const View& view, std::size_t width) {
  constexpr std::size_t most_cells = 10;
  const std::vector<Cell> cells = summary_cells(view, false);
  return grid(std::span{cells}.first(std::min(cells.size(), most_cells)), width);
}

}  // namespace stela::tool
