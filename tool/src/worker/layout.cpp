#include "worker/layout.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace stela::tool {
namespace {

using Block = std::vector<Line>;

constexpr int three_columns = 120;
constexpr int two_columns = 80;
constexpr int full_height = 14;
constexpr int full_width = 60;

std::size_t width_of(const Line& line) {
  std::size_t width = 0;
  for (const Span& span : line) width += tool::width_of(span.text);
  return width;
}

/// Exactly `width` columns.
Line fitted(const Line& line, std::size_t width) {
  Line out;
  std::size_t left = width;
  for (const Span& span : line) {
    Span cut{cut_to(span.text, left), span.style};
    left -= std::min(left, tool::width_of(cut.text));
    out.push_back(std::move(cut));
    if (left == 0) break;
  }
  if (left > 0) out.push_back({std::string(left, ' ')});
  return out;
}

Line title(std::string_view text, std::size_t width) {
  Line line{{std::string{text}.append(" "), Style::bold}};
  const std::size_t used = width_of(line);
  std::string rule;
  for (std::size_t i = used; i < width; ++i) rule += "─";
  line.push_back({rule, Style::dim});
  return line;
}

Line pair(std::string_view name, std::string value, Style style = Style::plain) {
  std::string label{name};
  label.append(label.size() < 16 ? 16 - label.size() : 1, ' ');
  return {{label, Style::dim}, {std::move(value), style}};
}

Style style_of_state(const std::string& state) {
  if (state == "relaying" || state == "idle") return Style::good;
  const bool bad = state == "broker down" || state == "misconfigured" || state == "stopped";
  return bad ? Style::bad : Style::warning;
}

std::string broker_words(const View& view) {
  return view.done.broker.empty() ? "connecting" : in_one_line(view.done.broker);
}

Block summary(const View& view, std::size_t width) {
  const Snapshot& done = view.done;
  const bool windowed = view.window.count() > 0;
  Block block{title("Summary", width)};
  block.push_back(pair("state", view.state, style_of_state(view.state)));
  block.push_back(
      pair("broker", broker_words(view), done.broker == "connected" ? Style::good : Style::bad));
  block.push_back(view.store_problem.empty()
                      ? pair("database", "answers", Style::good)
                      : pair("database", in_one_line(view.store_problem), Style::bad));
  block.push_back(pair(windowed ? "tick, mean" : "tick, last", in_words(done.mean_duration)));
  block.push_back(pair("ticks", windowed ? in_digits(done.ticks) + " in " + in_words(view.window)
                                         : in_digits(done.ticks_ever)));
  block.push_back(pair("heartbeat", in_words(done.heartbeat_age) + " ago"));
  block.push_back(pair("active workers", in_digits(done.active_workers)));
  block.push_back(pair("next refresh", in_words(view.next_refresh)));
  block.push_back(pair("worker", in_one_line(view.worker)));
  return block;
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

/// From commit to publication.
std::string latency_in_words(const Snapshot& done) {
  if (!done.latency_p50) return "-";
  return in_words(*done.latency_p50) + " / " + in_words(*done.latency_p99);
}

Block throughput(const View& view, std::size_t width) {
  const Totals& totals = view.done.totals;
  Block block{title(view.window.count() > 0 ? "Throughput, of the window" : "Throughput, last tick",
                    width)};
  const auto count = [&](std::string_view name, std::int64_t value, Style style = Style::plain) {
    block.push_back(pair(name, in_digits(value), value > 0 ? style : Style::plain));
  };
  count("claimed", totals.claimed);
  count("published", totals.published, Style::good);
  count("retried", totals.retried, Style::warning);
  count("parked", totals.parked, Style::bad);
  count("purged", totals.purged_stale);
  block.push_back(pair("last back-off", in_words(view.done.last_backoff)));
  block.push_back(pair("latency p50/p99", latency_in_words(view.done)));
  block.push_back(pair("published so far", in_digits(view.done.ever.published)));
  block.push_back(sparkline(view.done.per_slot, width));
  return block;
}

void append(Block& block, Block more) {
  block.insert(block.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

bool matches(const std::string& text, const std::string& filter) {
  return filter.empty() || text.find(filter) != std::string::npos;
}

std::string age_of(const PartitionStatus& partition, Timestamp now) {
  if (!partition.waiting_since) return "-";
  return in_words(std::max(now - *partition.waiting_since, std::chrono::microseconds{0}));
}

/// "stopped: broker_lost"; empty if it is well.
std::string trouble_of(const PartitionStatus& partition) {
  if (!partition.stopped.empty()) return "stopped: " + in_one_line(partition.stopped);
  return partition.attempts > 0 ? "backing off: " + in_one_line(partition.last_error) : "";
}

Style style_of(const PartitionStatus& partition) {
  if (!partition.stopped.empty()) return Style::bad;
  return partition.attempts > 0 ? Style::warning : Style::plain;
}

std::int64_t waiting_in(const PartitionStatus& partition) {
  return partition.pending + partition.redeliveries;
}

/// Stopped ones, those that back off, and those in which most waits.
void put_first_what_matters(std::vector<const PartitionStatus*>& partitions) {
  const auto key = [](const PartitionStatus* one) {
    return std::pair{style_of(*one), waiting_in(*one)};
  };
  std::stable_sort(partitions.begin(), partitions.end(),
                   [&](const auto* a, const auto* b) { return key(a) > key(b); });
}

Line partition_line(const PartitionStatus& partition, const View& view) {
  const auto cell = [](std::string text, std::size_t width) {
    const std::size_t used = tool::width_of(text);
    return std::string(width > used ? width - used : 0, ' ') + text;
  };
  const Style style = style_of(partition);
  const bool ours = partition.owner == view.worker ||
                    partition.owner.substr(0, view.worker.size() + 1) == view.worker + "-";
  const char* mark = style == Style::bad       ? "! "
                     : style == Style::warning ? "~ "
                     : ours                    ? "* "
                     : partition.owner.empty() ? "- "
                                               : "  ";
  Line line{{mark + partition.id.label(), style == Style::plain && ours ? Style::bold : style}};
  line.push_back({cell(in_digits(waiting_in(partition)), 11)});
  if (style != Style::plain) {
    line.push_back({"  " + trouble_of(partition), style});
    return line;
  }
  line.push_back({cell(in_digits(partition.in_flight), 8)});
  line.push_back({cell(age_of(partition, view.status.at), 13)});
  line.push_back({"  " + in_one_line(partition.owner.empty() ? "-" : partition.owner), Style::dim});
  return line;
}

/// Not one of a generation that is drained.
bool is_needed(const PartitionStatus& partition) {
  return partition.is_current || !partition.stopped.empty() || !partition.owner.empty() ||
         waiting_in(partition) > 0;
}

Block partitions(const View& view, const Looks& looks, std::size_t width, std::size_t height) {
  const OutboxStatus& status = view.status;
  const Snapshot& done = view.done;
  Block block{title("Partitions", width)};
  block.push_back(
      {{"wanted " + in_digits(done.wanted) + "  owned " + in_digits(done.owned) + "  leased " +
        in_digits(done.totals.leased) + "  released " + in_digits(done.totals.released)}});
  block.push_back({{"pending " + in_digits(status.pending + status.redeliveries) + "  in flight " +
                        in_digits(status.in_flight) + "  parked " + in_digits(status.parked),
                    status.parked > 0 ? Style::warning : Style::plain}});
  block.push_back({{"oldest pending " + (status.lag ? in_words(*status.lag) : std::string{"-"})}});
  if (status.stopped > 0) {
    block.back().push_back({"  " + in_digits(status.stopped) + " stopped", Style::bad});
  }
  block.back().push_back({"  retrying " + in_digits(status.retrying)});
  block.push_back({{"           pending  flight       oldest  owner", Style::dim}});
  std::vector<const PartitionStatus*> shown;
  for (const PartitionStatus& partition : status.partitions) {
    const std::string text =
        partition.id.label() + " " + partition.owner + " " + trouble_of(partition);
    if (matches(text, looks.filter) && is_needed(partition)) shown.push_back(&partition);
  }
  const std::size_t room = height > block.size() ? height - block.size() : 1;
  const std::size_t hidden = shown.size() > room ? shown.size() - room + 1 : 0;
  if (hidden > 0) {
    put_first_what_matters(shown);
    shown.resize(room - 1);
  }
  for (const PartitionStatus* partition : shown) block.push_back(partition_line(*partition, view));
  if (hidden > 0) {
    block.push_back(
        {{"  … " + in_digits(static_cast<std::int64_t>(hidden)) + " more", Style::dim}});
  }
  return block;
}

Block errors(const View& view, const Looks& looks, std::size_t width, std::size_t height) {
  Block block{title("Recent errors", width)};
  for (std::size_t i = 0; i < view.done.troubles.size() && block.size() < height; ++i) {
    const Trouble& trouble = view.done.troubles[i];
    const std::string stream = i < view.trouble_streams.size() ? view.trouble_streams[i] : "";
    std::string text = trouble.sequence > 0 ? std::to_string(trouble.sequence) + "  " : "";
    if (!trouble.partition.empty()) text.insert(0, in_one_line(trouble.partition) + "  ");
    if (!stream.empty()) text += in_one_line(stream) + "  ";
    text += in_one_line(trouble.message);
    if (!matches(text, looks.filter)) continue;
    block.push_back(
        {{to_string(trouble.at).substr(11, 8) + "  ", Style::dim}, {text, Style::warning}});
  }
  if (block.size() == 1) block.push_back({{"none", Style::dim}});
  return block;
}

Line header(const View& view, const Looks& looks, std::size_t width) {
  Line line{{"stela outbox work", Style::bold},
            {"  " + in_one_line(view.database) + " → " + in_one_line(view.broker_url)}};
  if (looks.held) line.push_back({"  [held]", Style::warning});
  return fitted(line, width);
}

Line footer(const Looks& looks, std::size_t width) {
  if (looks.typing) return fitted({{"/" + in_one_line(looks.filter) + "_", Style::bold}}, width);
  std::string text = "q quit  p hold  / filter  ? help";
  if (!looks.filter.empty()) text += "  showing: " + in_one_line(looks.filter);
  return fitted({{text, Style::dim}}, width);
}

Block help() {
  return {{{"Keys", Style::bold}},
          {{"q       stop: what is in flight is finished, partitions are handed over"}},
          {{"p       hold what is shown; relaying goes on"}},
          {{"/       show only partitions and errors that contain a text; Esc shows all"}},
          {{"?       this, and back"}},
          {{"Ctrl-C  as q; a second one leaves at once"}},
          {{""}},
          {{"* ours  - nobody's  ! stopped  ~ backing off", Style::dim}},
          {{"▂▅█ published in the last five minutes; behind ≤ the most a second", Style::dim}}};
}

/// Side by side, with a bar between.
Block beside(const std::vector<Block>& blocks, const std::vector<std::size_t>& widths) {
  std::size_t height = 0;
  for (const Block& block : blocks) height = std::max(height, block.size());
  Block joined;
  for (std::size_t row = 0; row < height; ++row) {
    Line line;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i > 0) line.push_back({" │ ", Style::dim});
      const Line& cell = row < blocks[i].size() ? blocks[i][row] : Line{};
      for (Span& span : fitted(cell, widths[i])) line.push_back(std::move(span));
    }
    joined.push_back(std::move(line));
  }
  return joined;
}

/// Where there is little room: what an operator must know, in as few lines as can be.
Block few_lines(const View& view) {
  const OutboxStatus& status = view.status;
  Block block;
  block.push_back({{view.state, style_of_state(view.state)}, {"  broker " + broker_words(view)}});
  if (!view.store_problem.empty()) {
    block.push_back({{"database " + in_one_line(view.store_problem), Style::bad}});
  }
  block.push_back({{"pending " + in_digits(status.pending + status.redeliveries) + "  oldest " +
                    (status.lag ? in_words(*status.lag) : std::string{"-"})}});
  block.push_back({{"published " + in_digits(view.done.ever.published) + "  parked " +
                    in_digits(status.parked) + "  retrying " + in_digits(status.retrying)}});
  const auto needed = std::count_if(status.partitions.begin(), status.partitions.end(), is_needed);
  block.push_back({{"owned " + in_digits(view.done.owned) + " of " + in_digits(needed) +
                    "  workers " + in_digits(view.done.active_workers)}});
  return block;
}

Block body_of(const View& view, const Looks& looks, std::size_t width, std::size_t height) {
  if (height < full_height - 2 || width < full_width) {
    Block block = few_lines(view);
    append(block, errors(view, looks, width, height - std::min(height, block.size())));
    return block;
  }
  if (width >= three_columns) {
    const std::size_t third = (width - 6) / 3;
    const std::size_t top = height > 16 ? height - 6 : 10;
    Block block = beside({summary(view, third), throughput(view, third),
                          partitions(view, looks, width - 6 - 2 * third, top)},
                         {third, third, width - 6 - 2 * third});
    append(block, errors(view, looks, width, height - std::min(height, block.size())));
    return block;
  }
  if (width >= two_columns) {
    const std::size_t left = (width - 3) * 2 / 5;
    Block first = summary(view, left);
    append(first, throughput(view, left));
    Block second = partitions(view, looks, width - 3 - left, height > 20 ? height - 8 : 12);
    append(second, errors(view, looks, width - 3 - left, height - std::min(height, second.size())));
    return beside({first, second}, {left, width - 3 - left});
  }
  Block block = partitions(view, looks, width, height > 34 ? height - 26 : 9);
  append(block, errors(view, looks, width, height > 34 ? 8 : 4));
  append(block, summary(view, width));
  append(block, throughput(view, width));
  return block;
}

}  // namespace

std::string state_of(const Snapshot& done, const OutboxStatus& status, bool draining) {
  if (draining) return "draining";
  if (done.ticks_ever == 0 || done.broker == "connecting") return "connecting";
  if (done.broker.starts_with("misconfigured")) return "misconfigured";
  if (done.broker != "connected") return "broker down";
  if (status.stopped > 0 && status.stopped == status.partition_count) return "stopped";
  if (done.owned == 0 && status.leasing) return "standby";
  const bool waits = status.pending + status.redeliveries > 0;
  return waits || done.totals.published > 0 ? "relaying" : "idle";
}

std::vector<Line> lay_out(const View& view, const Looks& looks, Size size) {
  const auto width = static_cast<std::size_t>(std::max(size.width, 1));
  const auto height = static_cast<std::size_t>(std::max(size.height, 1));
  std::vector<Line> lines{header(view, looks, width)};
  const std::size_t room = height > 2 ? height - 2 : 0;
  Block body = looks.help ? help() : body_of(view, looks, width, room);
  for (std::size_t row = 0; row < room; ++row) {
    lines.push_back(fitted(row < body.size() ? body[row] : Line{}, width));
  }
  if (height > 1) lines.push_back(footer(looks, width));
  return lines;
}

}  // namespace stela::tool
