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
/// Of the errors, while rows are collapsed.
constexpr std::size_t few_errors = 5;

bool matches(const std::string& text, const std::string& filter) {
  return text.find(filter) != std::string::npos;
}

Block problem_lines(const View& view, const Looks& looks, std::size_t width) {
  Block block;
  for (const Problem& problem : problems_of(view)) {
    if (!matches(problem.what, looks.filter)) continue;
    const char* mark = problem.style == Style::bad ? "! " : "~ ";
    append(block, wrapped(mark + problem.what, problem.style, 2, width));
    append(block, wrapped("  → " + problem.remedy, Style::plain, 4, width));
  }
  if (!block.empty()) block.insert(block.begin(), title("Problems", width));
  return block;
}

Block error_lines(const View& view, const Looks& looks, std::size_t width, std::size_t most) {
  Block block;
  if (!view.own) return block;
  block.push_back(title("Recent errors", width));
  const std::vector<RecentError>& troubles = view.own->done.troubles;
  const std::vector<std::string>& streams = view.own->trouble_streams;
  for (std::size_t i = 0; i < troubles.size() && block.size() <= most; ++i) {
    const RecentError& trouble = troubles[i];
    std::string text = trouble.sequence > 0 ? std::to_string(trouble.sequence) + "  " : "";
    if (!trouble.partition.empty()) text.insert(0, in_one_line(trouble.partition) + "  ");
    if (i < streams.size() && !streams[i].empty()) text += in_one_line(streams[i]) + "  ";
    text += in_one_line(trouble.message);
    if (!matches(text, looks.filter)) continue;
    block.push_back(
        {{to_string(trouble.at).substr(11, 8) + "Z  ", Style::dim}, {text, Style::warning}});
  }
  if (block.size() == 1) block.push_back({{"none", Style::dim}});
  return block;
}

/// What is scrolled, and the line that stays while the rows beneath it are.
struct Body {
  Block lines = {};
  std::size_t titles_at = 0;
  std::size_t rows_end = 0;
};

Body body_of(const View& view, const Looks& looks, std::size_t width, bool shows_all,
             std::size_t errors) {
  PartitionRows rows = partition_rows(view, looks, width);
  Body body{.lines = problem_lines(view, looks, width)};
  body.lines.push_back(title("Partitions, by " + std::string{name_of(looks.sort)} + " (s)", width));
  body.titles_at = body.lines.size();
  const bool has_rows = !rows.troubled.empty() || (shows_all && !rows.healthy.empty());
  if (has_rows) body.lines.push_back(rows.titles);
  append(body.lines, std::move(rows.troubled));
  if (shows_all) {
    append(body.lines, std::move(rows.healthy));
  } else if (!rows.healthy_in_short.empty()) {
    body.lines.push_back(std::move(rows.healthy_in_short));
  }
  body.rows_end = has_rows ? body.lines.size() : body.titles_at;
  append(body.lines, error_lines(view, looks, width, errors));
  return body;
}

/// With a row for each healthy partition if they fit, are wanted, or looked for.
Body fitting_body(const View& view, const Looks& looks, std::size_t width, std::size_t room) {
  const bool wants_all = looks.shows_all || !looks.filter.empty();
  if (wants_all) return body_of(view, looks, width, true, Statistics::kept_troubles);
  Body whole = body_of(view, looks, width, true, few_errors);
  if (whole.lines.size() <= room) return whole;
  return body_of(view, looks, width, false, few_errors);
}

Body help() {
  return {.lines = {{{"Keys", Style::bold}},
                    {{"q            leave; a worker first finishes messages in flight"}},
                    {{"p            freeze the screen; relaying continues"}},
                    {{"↑ ↓ j k      scroll by a line; PgUp, PgDn and the space bar by a page"}},
                    {{"Home End g G to the beginning, to the end"}},
                    {{"s            sort partitions by pending, oldest, parked, owner, partition"}},
                    {{"a            a row for each healthy partition, or one for all of them"}},
                    {{"/            show only rows that contain a text; Esc shows all"}},
                    {{"?            this, and back"}},
                    {{"Ctrl-C       as q; a second one leaves at once"}},
                    {{""}},
                    {{"* ours  - unowned  ! stopped  ~ in trouble", Style::dim}},
                    {{"▂▅█ published in the last five minutes; ≤ the most a second", Style::dim}}}};
}

Line header(const View& view, const Looks& looks, std::size_t width) {
  Line line{{view.command, Style::bold}, {"  " + in_one_line(view.database)}};
  if (view.own) line.push_back({" → " + in_one_line(view.own->broker_url)});
  if (looks.held) line.insert(line.begin() + 1, {"  [held]", Style::warning});
  return fitted(line, width);
}

Line footer(const Looks& looks, std::size_t width, const std::string& place) {
  if (looks.typing) return fitted({{"/" + in_one_line(looks.filter) + "_", Style::bold}}, width);
  Line line{{"q quit  ? help", Style::dim}};
  if (!place.empty()) line.push_back({"  " + place, Style::bold});
  if (!looks.filter.empty()) line.push_back({"  showing: " + in_one_line(looks.filter)});
  line.push_back({"  ↑↓ scroll  s sort  a all  / filter  p hold", Style::dim});
  return fitted(line, width);
}

/// "lines 1-12 of 210"; empty if all fit.
std::string place_in_words(std::size_t first, std::size_t room, std::size_t all) {
  if (all <= room) return {};
  return "lines " + std::to_string(first + 1) + "-" + std::to_string(std::min(first + room, all)) +
         " of " + std::to_string(all);
}

/// The lines from `scroll` on, under the titles of the rows that they are.
Block window_of(const Body& body, std::size_t scroll, std::size_t room) {
  const std::size_t end = std::min(body.lines.size(), scroll + room);
  Block shown{body.lines.begin() + static_cast<std::ptrdiff_t>(scroll),
              body.lines.begin() + static_cast<std::ptrdiff_t>(end)};
  const bool is_amid_rows = scroll > body.titles_at && scroll + 1 < body.rows_end;
  if (is_amid_rows && room > 2) shown.front() = body.lines[body.titles_at];
  return shown;
}

}  // namespace

std::string state_of(const Figures& done, const OutboxStatus& status, bool draining) {
  if (draining) return "draining";
  const BrokerState broker = done.broker.value_or(BrokerStatus{}).state;
  if (done.ticks_ever == 0 || broker == BrokerState::connecting) return "connecting";
  if (broker == BrokerState::misconfigured) return "misconfigured";
  if (broker == BrokerState::down) return "broker down";
  if (status.stopped > 0 && status.stopped == status.partition_count) return "stopped";
  if (done.owned == 0 && status.leasing) return "standby";
  return waiting_in(status) > 0 || done.totals.published > 0 ? "relaying" : "idle";
}

Frame lay_out(const View& view, const Looks& looks, Size size) {
  const auto width = static_cast<std::size_t>(std::max(size.width, 1));
  const auto height = static_cast<std::size_t>(std::max(size.height, 1));
  const bool is_full = width >= full_width && height >= full_height;
  Frame frame{.lines = {header(view, looks, width)}};
  const Block head = is_full ? summary(view, width, height) : short_summary(view, width);
  if (is_full && !looks.help) append(frame.lines, head);
  const std::size_t used = frame.lines.size() + 1;
  const std::size_t room = height > used ? height - used : 0;
  Body body = looks.help ? help() : fitting_body(view, looks, width, room);
  if (!is_full && !looks.help) {
    body.lines.insert(body.lines.begin(), head.begin(), head.end());
    body.titles_at += head.size();
    body.rows_end += head.size();
  }
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
