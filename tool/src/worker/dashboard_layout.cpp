#include "worker/dashboard_layout.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "worker/partition_table.hpp"
#include "worker/problems.hpp"
#include "worker/summary.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stela::tool {
namespace {

constexpr std::size_t full_height = 14;
constexpr std::size_t full_width = 60;
/// The widths from which two and three boxes fit side by side.
constexpr std::size_t two_columns = 80;
constexpr std::size_t three_columns = 160;
/// The height from which there is room for details.
constexpr std::size_t roomy = 30;
/// The number of errors and of workers shown by default.
constexpr std::size_t few_rows = 5;

bool matches(const std::string& text, const std::string& filter) {
  return text.find(filter) != std::string::npos;
}

Block problem_lines(const View& view, const Looks& looks, std::size_t width) {
  Block block;
  for (const Problem& problem : problems_of(view)) {
    if (!matches(problem.what, looks.filter)) continue;
    const std::string mark = problem.style == Style::bad       ? "! "
                             : problem.style == Style::warning ? "~ "
                                                               : "  ";
    Block lines = wrapped(mark + problem.what, Style::plain, 2, width);
    // Only the mark is coloured, so that the sentence is legible on any background.
    lines.front() = {{mark.substr(0, 1), problem.style}, {lines.front().front().text.substr(1)}};
    append(block, std::move(lines));
    append(block, wrapped("  → " + problem.remedy, Style::plain, 4, width));
  }
  if (block.empty() && !looks.filter.empty()) return block;
  if (block.empty()) {
    // This process doesn't ask the broker about the state of its streams.
    append(block, wrapped("none in the database; '" + in_one_line(view.program) +
                              " check' asks the broker for its streams, too",
                          Style::plain, 0, width));
  }
  block.insert(block.begin(), title("Problems", width));
  return block;
}

/// The error's subject and count, shown before its text.
std::string place_of(const RecentError& error) {
  constexpr std::size_t longest_stream = 20;
  std::string place;
  if (!error.subject.empty()) place += in_one_line(error.subject) + "  ";
  if (error.sequence > 0) place += std::to_string(error.sequence) + "  ";
  if (!error.stream.empty()) place += cut_to(in_one_line(error.stream), longest_stream) + "  ";
  if (error.others > 0) place += "(and " + in_digits(error.others) + " more)  ";
  return place;
}

/// At most four lines, with the end of a long text, because the cause is there.
Block error_lines(const RecentError& error, std::size_t width) {
  constexpr std::size_t indent = 11;
  const std::string time = error.at ? to_string(*error.at).substr(11, 8) + "Z" : "now";
  const std::string place = place_of(error);
  const std::string text = in_one_line(error.message);
  Line first{{on_the_left(time, indent), Style::warning}, {place}};
  if (indent + width_of(place + text) <= width) {
    first.push_back({text});
    return {first};
  }
  const std::string blanks(indent, ' ');
  const std::size_t room = width > indent ? width - indent : 0;
  Block block{first};
  append(block, wrapped(blanks + text, Style::plain, indent, width));
  if (block.size() > 4) block = {first, {{blanks + shortened(text, room)}}};
  return block;
}

Block all_error_lines(const View& view, const Looks& looks, std::size_t width, std::size_t most) {
  Block block{title("Recent errors", width)};
  std::size_t shown = 0;
  for (const RecentError& error : view.errors) {
    if (!matches(place_of(error) + in_one_line(error.message), looks.filter)) continue;
    if (++shown > most) break;
    append(block, error_lines(error, width));
  }
  if (shown == 0) block.push_back({{"none"}});
  return block;
}

/// The scrolled part, and the title line that stays while its rows scroll.
struct Body {
  Block lines = {};
  std::size_t titles_at = 0;
  std::size_t rows_end = 0;

  void put_first(const Block& block) {
    lines.insert(lines.begin(), block.begin(), block.end());
    titles_at += block.size();
    rows_end += block.size();
  }
};

/// Which items get a row each.
struct Rows {
  bool healthy_partitions = true;
  std::size_t workers = few_rows;
  std::size_t errors = few_rows;
};

Body body_of(const View& view, const Looks& looks, Size size, const Rows& shown) {
  const auto width = static_cast<std::size_t>(size.width);
  PartitionRows rows = partition_rows(view, looks, width);
  Body body;
  if (width >= full_width && width < two_columns) append(body.lines, throughput(view, width));
  body.lines.push_back(title("Partitions, by " + std::string{name_of(looks.sort)} + " (s)", width));
  append(body.lines, own_share(view, width));
  body.titles_at = body.lines.size();
  const bool has_rows =
      !rows.troubled.empty() || (shown.healthy_partitions && !rows.healthy.empty());
  if (has_rows) body.lines.push_back(rows.titles);
  append(body.lines, std::move(rows.troubled));
  append(body.lines, std::move(shown.healthy_partitions ? rows.healthy : rows.healthy_in_short));
  body.rows_end = has_rows ? body.lines.size() : body.titles_at;
  if (width < three_columns && shown.workers > 0) {
    body.lines.push_back(title("Workers", width));
    append(body.lines, worker_rows(view, looks.filter, width, shown.workers + 2));
  } else if (width < three_columns) {
    const std::string living = in_digits(living_workers(view.status).all);
    body.lines.push_back(title("Workers: " + living + " live (a shows them)", width));
  }
  append(body.lines, all_error_lines(view, looks, width, shown.errors));
  if (view.is_stale) body.lines = dimmed(std::move(body.lines));
  body.put_first(problem_lines(view, looks, width));
  return body;
}

/// Shows a row for each healthy partition, or at least for each worker, if they fit. Shows all rows
/// if wanted, or if there is a filter.
Body fitting_body(const View& view, const Looks& looks, Size size, std::size_t room) {
  constexpr std::size_t all = Statistics::kept_troubles;
  if (looks.shows_all || !looks.filter.empty()) return body_of(view, looks, size, {true, all, all});
  for (const bool healthy_partitions : {true, false}) {
    Body body = body_of(view, looks, size, {.healthy_partitions = healthy_partitions});
    if (body.lines.size() <= room) return body;
  }
  return body_of(view, looks, size, {.healthy_partitions = false, .workers = 0});
}

/// The fixed boxes.
Block head_of(const View& view, std::size_t width, std::size_t height) {
  const bool is_roomy = height >= roomy;
  if (width < two_columns) return summary(view, width, is_roomy);
  const bool is_wide = width >= three_columns;
  const std::size_t left = is_wide ? std::max<std::size_t>(41, (width - 4) / 4) : width * 41 / 80;
  const std::size_t middle = is_wide ? throughput_width + 2 : width - 2 - left;
  Block head = beside(summary(view, left, is_roomy), left, throughput(view, middle), middle);
  if (!is_wide) return head;
  const std::size_t right = width - left - middle - 4;
  Block workers{title("Workers", right)};
  append(workers, worker_rows(view, {}, right, head.size() - 1));
  return beside(head, left + 2 + middle, workers, right);
}

Body help() {
  return {.lines = {{{"Keys", Style::bold}},
                    {{"q            leave; a worker first finishes messages in flight"}},
                    {{"p            pause the screen; relaying continues"}},
                    {{"↑ ↓ j k      scroll by a line; PgUp, PgDn and the space bar by a page"}},
                    {{"Home End g G to the beginning, to the end"}},
                    {{"s            sort partitions by pending, oldest, parked, owner, partition"}},
                    {{"a            a row for each healthy partition and worker, or one for all"}},
                    {{"/            show only rows that contain a text; Esc shows all"}},
                    {{"?            this, and back"}},
                    {{"Ctrl-C       as q; a second one leaves at once"}},
                    {{""}},
                    {{"* ours  - unowned  ! stopped  ~ in trouble, or waits for others"}},
                    {{"▂▅█ published in the last hour, by two minutes; · not known"}},
                    {{"latency  from commit to publication, in the last minute"}}}};
}

Line header(const View& view, const Looks& looks, std::size_t width) {
  Line line{{view.command, Style::bold}};
  if (view.own) line.push_back({"  " + in_one_line(view.own->worker), Style::bold});
  if (looks.paused) line.push_back({"  [paused]", Style::warning});
  if (view.is_stale) {
    line.push_back({"  as of " + to_string(view.status.at).substr(11, 8) + "Z", Style::bad});
  }
  line.push_back({"  " + in_one_line(view.database)});
  if (view.own) line.push_back({" → " + in_one_line(view.own->broker_url)});
  return fitted(line, width);
}

Line footer(const Looks& looks, std::size_t width, const std::string& place) {
  if (looks.typing) return fitted({{"/" + in_one_line(looks.filter) + "_", Style::bold}}, width);
  Line line{{"q quit  ? help", Style::dim}};
  if (!place.empty()) line.push_back({"  " + place, Style::bold});
  if (!looks.filter.empty()) line.push_back({"  showing: " + in_one_line(looks.filter)});
  line.push_back({"  ↑↓ scroll  s sort  a all  / filter  p pause", Style::dim});
  return fitted(line, width);
}

/// "lines 1-12 of 210"; empty if all fit.
std::string place_in_words(std::size_t first, std::size_t room, std::size_t all) {
  if (all <= room) return {};
  return "lines " + std::to_string(first + 1) + "-" + std::to_string(std::min(first + room, all)) +
         " of " + std::to_string(all);
}

/// The lines from `scroll` on, below the titles of their rows.
Block window_of(const Body& body, std::size_t scroll, std::size_t room) {
  const std::size_t end = std::min(body.lines.size(), scroll + room);
  Block shown{body.lines.begin() + static_cast<std::ptrdiff_t>(scroll),
              body.lines.begin() + static_cast<std::ptrdiff_t>(end)};
  const bool is_amid_rows = scroll > body.titles_at && scroll + 1 < body.rows_end;
  if (is_amid_rows && room > 2) shown.front() = body.lines[body.titles_at];
  return shown;
}

}  // namespace

std::string state_of(const Figures& done, const OutboxStatus& status, bool draining, bool is_down) {
  if (draining) return "draining";
  if (is_down) return "database down";
  const BrokerState broker = done.broker.value_or(BrokerStatus{}).state;
  if (done.ticks_ever == 0 || broker == BrokerState::connecting) return "connecting";
  const auto backing_off = std::count_if(status.partitions.begin(), status.partitions.end(),
                                         [](const auto& each) { return each.attempts > 0; });
  const bool is_in_part = backing_off > 0 && backing_off < done.owned;
  if (broker == BrokerState::misconfigured && !is_in_part) return "misconfigured";
  if (broker == BrokerState::down) return "broker down";
  if (status.stopped > 0 && status.stopped == status.partition_count) return "stopped";
  if (done.owned == 0 && status.leasing) return "standby";
  return waiting_in(status) > 0 || done.totals.published > 0 ? "relaying" : "idle";
}

Frame lay_out(const View& view, const Looks& looks, Size size) {
  size = {std::max(size.width, 1), std::max(size.height, 1)};
  const auto width = static_cast<std::size_t>(size.width);
  const auto height = static_cast<std::size_t>(size.height);
  const bool is_full = width >= full_width && height >= full_height;
  Frame frame{.lines = {header(view, looks, width)}};
  Block head = is_full ? head_of(view, width, height) : short_summary(view, width);
  if (view.is_stale) head = dimmed(std::move(head));
  if (is_full && !looks.help) append(frame.lines, head);
  const std::size_t used = frame.lines.size() + 1;
  const std::size_t room = height > used ? height - used : 0;
  Body body = looks.help ? help() : fitting_body(view, looks, size, room);
  if (!is_full && !looks.help) body.put_first(head);
  const std::size_t all = body.lines.size();
  frame.page = room;
  frame.scroll = std::min(looks.scroll, all > room ? all - room : 0);
  append(frame.lines, window_of(body, frame.scroll, room));
  frame.lines.resize(room + used - 1);
  for (Line& line : frame.lines) line = fitted(line, width);
  if (height > 1) {
    frame.lines.push_back(footer(looks, width, place_in_words(frame.scroll, room, all)));
  }
  return frame;
}

}  // namespace stela::tool
