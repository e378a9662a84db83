#include "worker/partition_table.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "worker/problems.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace stela::tool {
namespace {

using PartitionList = std::vector<const PartitionStatus*>;

/// False for a partition of a drained generation.
bool is_needed(const PartitionStatus& partition) {
  return partition.is_current || partition.stopped || !partition.owner.empty() ||
         partition.parked > 0 || waiting_in(partition) > 0;
}

/// True if no worker serves it until a takeover.
bool is_lease_over(const PartitionStatus& partition) {
  return !partition.owner.empty() && partition.lease_left.count() <= 0;
}

bool is_healthy(const PartitionStatus& partition) {
  return style_of(partition) == Style::plain && partition.parked == 0 && !is_lease_over(partition);
}

bool is_ours(const PartitionStatus& partition, const View& view) {
  return view.own && is_own(*view.own, partition.owner);
}

std::string state_in_words(const PartitionStatus& partition, const OutboxStatus& status) {
  std::string trouble = trouble_of(partition);
  if (trouble.empty()) trouble = obstacle_of(partition, status);
  if (!trouble.empty()) return trouble;
  if (is_lease_over(partition)) return "lease expired";
  if (partition.parked > 0) return "has parked messages";
  return partition.is_current ? "ok" : "draining";
}

std::string oldest_of(const PartitionStatus& partition, Timestamp now) {
  if (!partition.waiting_since) return "-";
  return in_words(std::max(now - *partition.waiting_since, std::chrono::microseconds{0}));
}

std::string next_retry_of(const PartitionStatus& partition, Timestamp now) {
  if (!partition.next_attempt_at) return "-";
  return *partition.next_attempt_at > now ? in_words(*partition.next_attempt_at - now) : "now";
}

struct Column {
  std::string_view title;
  std::size_t width;
  /// The line width from which it is shown.
  std::size_t from;
  std::string (*text)(const PartitionStatus&, Timestamp);
};

std::string lease_of(const PartitionStatus& partition, Timestamp) {
  return partition.owner.empty() ? "-" : in_words(partition.lease_left);
}

/// Right-aligned numbers. The owner follows, and the state has the rest of the line.
constexpr std::array columns{
    Column{"PENDING", 8, 0,
           [](const PartitionStatus& p, Timestamp) { return waiting_in_words(p); }},
    Column{"IN FLIGHT", 9, 100,
           [](const PartitionStatus& p, Timestamp) { return in_digits(p.in_flight); }},
    Column{"RETRYING", 8, 120,
           [](const PartitionStatus& p, Timestamp) { return in_digits(p.retrying); }},
    Column{"PARKED", 6, 0, [](const PartitionStatus& p, Timestamp) { return in_digits(p.parked); }},
    Column{"OLDEST", 11, 0, oldest_of},
    Column{"RETRY IN", 10, 120, next_retry_of},
    Column{"PUBLISHED", 13, 140,
           [](const PartitionStatus& p, Timestamp) { return in_digits(p.published); }},
    Column{"LEASE", 10, 160, lease_of},
};
constexpr std::size_t label_width = 11;

/// 0: the owner isn't shown.
std::size_t owner_width(std::size_t width) {
  if (width < 80) return 0;
  return width < 120 ? 12 : 20;
}

Line titles(std::size_t width) {
  std::string text = on_the_left("  PARTITION", label_width);
  for (const Column& column : columns) {
    if (width >= column.from) text += ' ' + on_the_right(column.title, column.width);
  }
  const std::size_t owner = owner_width(width);
  if (owner > 0) text += "  " + on_the_left("OWNER", owner);
  return {{text + "  STATE", Style::dim}};
}

const char* mark_of(const PartitionStatus& partition, Style trouble, bool ours) {
  if (trouble != Style::plain) return trouble == Style::bad ? "! " : "~ ";
  if (ours) return "* ";
  return partition.owner.empty() ? "- " : "  ";
}

Line row_of(const PartitionStatus& partition, const View& view, std::size_t width) {
  const bool ours = is_ours(partition, view);
  const bool is_hindered = !is_healthy(partition) || !obstacle_of(partition, view.status).empty();
  Style trouble = style_of(partition);
  if (trouble == Style::plain && is_hindered) trouble = Style::warning;
  const Style style = trouble == Style::plain && ours ? Style::bold : trouble;
  Line line{
      {on_the_left(mark_of(partition, trouble, ours) + partition.id.label(), label_width), style}};
  std::string numbers;
  for (const Column& column : columns) {
    if (width < column.from) continue;
    numbers += ' ' + on_the_right(column.text(partition, view.status.at), column.width);
  }
  line.push_back({std::move(numbers)});
  const std::string owner = partition.owner.empty() ? "-" : in_one_line(partition.owner);
  if (owner_width(width) > 0) line.push_back({"  " + on_the_left(owner, owner_width(width))});
  append(line, marked("  " + state_in_words(partition, view.status), trouble));
  return line;
}

bool is_before(const PartitionStatus& a, const PartitionStatus& b, SortKey key) {
  switch (key) {
    case SortKey::pending:
      return waiting_in(a) > waiting_in(b);
    case SortKey::oldest:
      return a.waiting_since.value_or(Timestamp::max()) <
             b.waiting_since.value_or(Timestamp::max());
    case SortKey::parked:
      return a.parked > b.parked;
    case SortKey::owner:
      return a.owner < b.owner;
    case SortKey::label:
      break;
  }
  return a.id < b.id;
}

/// Stopped ones first, then others in trouble, then the rest.
PartitionList sorted(PartitionList partitions, SortKey key) {
  const auto rank = [](const PartitionStatus& one) {
    return style_of(one) == Style::bad ? 0 : is_healthy(one) ? 2 : 1;
  };
  std::stable_sort(partitions.begin(), partitions.end(), [&](const auto* a, const auto* b) {
    return rank(*a) != rank(*b) ? rank(*a) < rank(*b) : is_before(*a, *b, key);
  });
  return partitions;
}

Line in_short(const PartitionList& healthy, const std::string& state, const View& view) {
  std::int64_t waiting = 0;
  bool is_lower_bound = false;
  std::int64_t in_flight = 0;
  std::int64_t unowned = 0;
  std::optional<Timestamp> since;
  for (const PartitionStatus* each : healthy) {
    waiting += waiting_in(*each);
    is_lower_bound |= each->is_pending_lower_bound;
    in_flight += each->in_flight;
    unowned += each->owner.empty() ? 1 : 0;
    if (each->waiting_since)
      since = std::min(since.value_or(Timestamp::max()), *each->waiting_since);
  }
  std::string text = " (a shows them): pending " + at_least(waiting, is_lower_bound) +
                     ", in flight " + in_digits(in_flight);
  if (since)
    text += ", oldest " + in_words(std::max(view.status.at - *since, Timestamp::duration{0}));
  if (unowned > 0 && view.status.leasing) text += ", unowned " + in_digits(unowned);
  const auto size = static_cast<std::int64_t>(healthy.size());
  if (state == "ok") return {{"  " + counted(size, "healthy partition"), Style::good}, {text}};
  return {
      {"~ ", Style::warning}, {counted(size, "partition") + ", "}, {state, Style::warning}, {text}};
}

bool is_meant(const PartitionStatus& partition, const View& view, const std::string& filter) {
  if (!is_needed(partition)) return false;
  const std::string text =
      partition.id.label() + ' ' + partition.owner + ' ' + state_in_words(partition, view.status);
  return text.find(filter) != std::string::npos;
}

constexpr std::size_t heartbeat_width = 9;
constexpr std::size_t owns_width = 4;
constexpr std::size_t broker_width = 10;
constexpr std::size_t roomy_broker = 30;

/// Its state and the reason, in the style of its trouble.
Span state_in_words(const WorkerStatus& worker, const OutboxStatus& status) {
  if (!worker.is_alive) {
    const bool hangs = worker.process == WorkerProcess::runs;
    return hangs ? Span{"silent", Style::bad} : Span{"gone", Style::warning};
  }
  if (!worker.broker) return {"-"};
  if (is_misconfigured_in_part(worker, status)) return {"connected"};
  const std::string broker = in_one_line(to_string(*worker.broker));
  const bool is_fine =
      worker.broker->is_connected() || worker.broker->state == BrokerState::connecting;
  if (is_fine) return {broker};
  return {(worker.is_cut_off ? "cut off: " : "") + broker, Style::bad};
}

std::string heartbeat_of(const WorkerStatus& worker, Timestamp now) {
  if (worker.heartbeat_ttl.count() <= 0) return "-";
  return age_of(worker.heartbeat_ttl - (worker.heartbeat_until - now), worker.heartbeat_ttl);
}

}  // namespace

bool is_own(const OwnWork& own, std::string_view worker) {
  return worker == own.worker || worker.starts_with(own.worker + "-");
}

std::int64_t needed_partitions(const OutboxStatus& status) {
  return std::count_if(status.partitions.begin(), status.partitions.end(), is_needed);
}

Block own_share(const View& view, std::size_t width) {
  if (!view.own) return {};
  const OwnWork& own = *view.own;
  std::optional<std::chrono::microseconds> lease_left;
  for (const PartitionStatus& each : view.status.partitions) {
    if (is_ours(each, view))
      lease_left = std::min(lease_left.value_or(own.lease_ttl), each.lease_left);
  }
  return grid(
      std::array{
          Cell{"desired", in_digits(own.done.wanted)},
          Cell{"taken over", in_digits(own.done.ever.leased)},
          Cell{"released", in_digits(own.done.ever.released)},
          Cell{"lease", lease_left ? age_of(own.lease_ttl - *lease_left, own.lease_ttl) : "-"}},
      width, 15);
}

PartitionRows partition_rows(const View& view, const Looks& looks, std::size_t width) {
  PartitionList meant;
  for (const PartitionStatus& each : view.status.partitions) {
    if (is_meant(each, view, looks.filter)) meant.push_back(&each);
  }
  PartitionRows rows{.titles = titles(width)};
  std::map<std::string, PartitionList> healthy;
  for (const PartitionStatus* each : sorted(std::move(meant), looks.sort)) {
    Block& block = is_healthy(*each) ? rows.healthy : rows.troubled;
    block.push_back(row_of(*each, view, width));
    if (is_healthy(*each)) healthy[state_in_words(*each, view.status)].push_back(each);
  }
  for (const auto& [state, list] : healthy) {
    rows.healthy_in_short.push_back(in_short(list, state, view));
  }
  return rows;
}

std::string_view name_of(SortKey key) noexcept {
  constexpr std::array<std::string_view, 5> names{"pending", "oldest", "parked", "owner",
                                                  "partition"};
  return names[static_cast<std::size_t>(key)];
}

Block worker_rows(const View& view, const std::string& filter, std::size_t width,
                  std::size_t most) {
  constexpr std::size_t fixed = heartbeat_width + owns_width + 7;
  const std::size_t room = width > fixed + broker_width ? width - fixed - broker_width : 0;
  const std::size_t name = std::min<std::size_t>(room * 3 / 5, 24);
  const std::size_t host = std::min<std::size_t>(room - room * 3 / 5, 20);
  const std::size_t rest = width - std::min(width, name + host + fixed);
  Block troubled;
  Block others;
  for (const WorkerStatus& worker : view.status.workers) {
    const Span state = state_in_words(worker, view.status);
    if ((worker.name + ' ' + worker.host + ' ' + state.text).find(filter) == std::string::npos) {
      continue;
    }
    const bool is_ours = view.own && is_own(*view.own, worker.name);
    const char* const mark = state.style == Style::bad       ? "! "
                             : state.style == Style::warning ? "~ "
                             : is_ours                       ? "* "
                                                             : "  ";
    Line line{{mark, state.style},
              {on_the_left(in_one_line(worker.name), name) + ' ' +
               on_the_left(in_one_line(worker.host), host) + ' ' +
               on_the_right(heartbeat_of(worker, view.status.at), heartbeat_width) + ' ' +
               on_the_right(in_digits(worker.partitions), owns_width) + "  "}};
    // Without room for the reason, its end alone would say nothing.
    const std::string text =
        rest < roomy_broker ? state.text.substr(0, state.text.find(": ")) : state.text;
    append(line, marked(shortened(text, rest), state.style));
    (state.style == Style::plain ? others : troubled).push_back(std::move(line));
  }
  append(troubled, std::move(others));
  if (troubled.empty()) return {{{"none"}}};
  if (troubled.size() >= most && most > 1) {
    const std::string left = std::to_string(troubled.size() + 2 - most);
    troubled.resize(most - 2);
    troubled.push_back({{"  and " + left + " more"}});
  }
  troubled.insert(troubled.begin(), {{"  " + on_the_left("WORKER", name) + ' ' +
                                          on_the_left("HOST", host) + " HEARTBEAT OWNS  BROKER",
                                      Style::dim}});
  return troubled;
}

}  // namespace stela::tool
