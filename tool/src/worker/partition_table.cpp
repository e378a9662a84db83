#include "worker/partition_table.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "worker/problems.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace stela::tool {
namespace {

using PartitionList = std::vector<const PartitionStatus*>;

/// Not one of a generation that is drained.
bool is_needed(const PartitionStatus& partition) {
  return partition.is_current || partition.stopped || !partition.owner.empty() ||
         partition.parked > 0 || waiting_in(partition) > 0;
}

bool is_healthy(const PartitionStatus& partition) {
  return style_of(partition) == Style::plain && partition.parked == 0;
}

bool is_ours(const PartitionStatus& partition, const View& view) {
  if (!view.own || partition.owner.empty()) return false;
  const std::string& worker = view.own->worker;
  return partition.owner == worker || partition.owner.starts_with(worker + "-");
}

std::string state_in_words(const PartitionStatus& partition) {
  std::string trouble = trouble_of(partition);
  if (!trouble.empty()) return trouble;
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
  /// It is shown from this width of the line on.
  std::size_t from;
  std::string (*text)(const PartitionStatus&, Timestamp);
};

/// Numbers, on the right of their columns. What is left of the line has the state and the owner.
constexpr std::array columns{
    Column{"PENDING", 8, 0,
           [](const PartitionStatus& p, Timestamp) { return waiting_in_words(p); }},
    Column{"IN FLIGHT", 9, 80,
           [](const PartitionStatus& p, Timestamp) { return in_digits(p.in_flight); }},
    Column{"RETRYING", 8, 100,
           [](const PartitionStatus& p, Timestamp) { return in_digits(p.retrying); }},
    Column{"PARKED", 6, 0, [](const PartitionStatus& p, Timestamp) { return in_digits(p.parked); }},
    Column{"OLDEST", 11, 0, oldest_of},
    Column{"RETRY IN", 10, 120, next_retry_of},
    Column{"PUBLISHED", 13, 140,
           [](const PartitionStatus& p, Timestamp) { return in_digits(p.published); }},
};
constexpr std::size_t label_width = 11;
constexpr std::size_t owner_from = 100;

/// Of the state; what is left is the owner's.
std::size_t state_width(std::size_t width) {
  std::size_t used = label_width;
  for (const Column& column : columns) used += width >= column.from ? 1 + column.width : 0;
  const std::size_t left = width > used + 2 ? width - used - 2 : 0;
  return width >= owner_from ? left * 3 / 5 : left;
}

std::string on_the_right(std::string_view text, std::size_t width) {
  const std::size_t used = width_of(text);
  return std::string(width > used ? width - used : 0, ' ').append(text);
}

std::string on_the_left(const std::string& text, std::size_t width) {
  const std::string cut = cut_to(text, width);
  return cut + std::string(width - width_of(cut), ' ');
}

Line titles(std::size_t width) {
  std::string text = on_the_left("  PARTITION", label_width);
  for (const Column& column : columns) {
    if (width >= column.from) text += ' ' + on_the_right(column.title, column.width);
  }
  text += "  " + on_the_left("STATE", state_width(width));
  if (width >= owner_from) text += "  OWNER";
  return {{text, Style::dim}};
}

const char* mark_of(const PartitionStatus& partition, bool ours) {
  const Style style = style_of(partition);
  if (style == Style::bad) return "! ";
  if (!is_healthy(partition)) return "~ ";
  if (ours) return "* ";
  return partition.owner.empty() ? "- " : "  ";
}

Line row_of(const PartitionStatus& partition, const View& view, std::size_t width) {
  const bool ours = is_ours(partition, view);
  const Style trouble = is_healthy(partition) || style_of(partition) != Style::plain
                            ? style_of(partition)
                            : Style::warning;
  const Style style = trouble == Style::plain && ours ? Style::bold : trouble;
  Line line{{on_the_left(mark_of(partition, ours) + partition.id.label(), label_width), style}};
  std::string numbers;
  for (const Column& column : columns) {
    if (width < column.from) continue;
    numbers += ' ' + on_the_right(column.text(partition, view.status.at), column.width);
  }
  line.push_back({std::move(numbers)});
  line.push_back({"  " + on_the_left(state_in_words(partition), state_width(width)), trouble});
  if (width >= owner_from) {
    line.push_back(
        {"  " + (partition.owner.empty() ? "-" : in_one_line(partition.owner)), Style::dim});
  }
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

/// Stopped ones, those that are in other trouble, the others.
PartitionList sorted(PartitionList partitions, SortKey key) {
  const auto rank = [](const PartitionStatus& one) {
    return style_of(one) == Style::bad ? 0 : is_healthy(one) ? 2 : 1;
  };
  std::stable_sort(partitions.begin(), partitions.end(), [&](const auto* a, const auto* b) {
    return rank(*a) != rank(*b) ? rank(*a) < rank(*b) : is_before(*a, *b, key);
  });
  return partitions;
}

Line in_short(const PartitionList& healthy, const View& view) {
  if (healthy.empty()) return {};
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
  std::string text = "  " +
                     counted(static_cast<std::int64_t>(healthy.size()), "healthy partition") +
                     " (a shows them): pending " + at_least(waiting, is_lower_bound) +
                     ", in flight " + in_digits(in_flight);
  if (since)
    text += ", oldest " + in_words(std::max(view.status.at - *since, Timestamp::duration{0}));
  if (unowned > 0 && view.status.leasing) text += ", unowned " + in_digits(unowned);
  return {{std::move(text), Style::good}};
}

bool is_meant(const PartitionStatus& partition, const std::string& filter) {
  if (!is_needed(partition)) return false;
  const std::string text =
      partition.id.label() + ' ' + partition.owner + ' ' + state_in_words(partition);
  return text.find(filter) != std::string::npos;
}

}  // namespace

std::int64_t needed_partitions(const OutboxStatus& status) {
  return std::count_if(status.partitions.begin(), status.partitions.end(), is_needed);
}

PartitionRows partition_rows(const View& view, const Looks& looks, std::size_t width) {
  PartitionList meant;
  for (const PartitionStatus& each : view.status.partitions) {
    if (is_meant(each, looks.filter)) meant.push_back(&each);
  }
  PartitionRows rows{.titles = titles(width)};
  PartitionList healthy;
  for (const PartitionStatus* each : sorted(std::move(meant), looks.sort)) {
    Block& block = is_healthy(*each) ? rows.healthy : rows.troubled;
    block.push_back(row_of(*each, view, width));
    if (is_healthy(*each)) healthy.push_back(each);
  }
  rows.healthy_in_short = in_short(healthy, view);
  return rows;
}

std::string_view name_of(SortKey key) noexcept {
  constexpr std::array<std::string_view, 5> names{"pending", "oldest", "parked", "owner",
                                                  "partition"};
  return names[static_cast<std::size_t>(key)];
}

}  // namespace stela::tool
