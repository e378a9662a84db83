#include "tables/stored_operations.hpp"

#include "database/database.hpp"
#include "database/journal.hpp"
#include "outbox_sql/inspection.hpp"
#include "outbox_sql/logs.hpp"
#include "outbox_sql/losses.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/operations.hpp"
#include "outbox_sql/partitions.hpp"
#include "tables/generations.hpp"
#include "tables/locator.hpp"
#include "tables/settings.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>
#include <vector>

namespace stela::outbox {

using database::Connection;

namespace {

/// How many steps of an action are listed.
constexpr std::int64_t most_items = 1'000;

std::string in_words(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " message" : " messages");
}

std::string stream_name(Connection& connection, std::int64_t stream) {
  auto text = connection.rows(sql::stream_text{.stream = stream});
  if (text.step()) return std::string{text.name()};
  return "stream number " + std::to_string(stream);
}

/// The actual contents of a partition whose row has wrong counts.
struct Counts {
  std::int64_t partition = 0;
  std::int64_t parked = 0;
  std::int64_t redeliveries = 0;
};

std::vector<Counts> wrong_counts(Connection& connection) {
  std::vector<Counts> wrong;
  auto row = connection.rows(sql::inspect_partitions{});
  while (row.step()) {
    const bool is_right =
        row.parked() == row.actual_parked() && row.redeliveries() == row.actual_redeliveries();
    if (is_right) continue;
    wrong.push_back({.partition = row.partition(),
                     .parked = row.actual_parked(),
                     .redeliveries = row.actual_redeliveries()});
  }
  return wrong;
}

/// What waits in a partition that doesn't exist, or is to be sent again from there.
struct Stranded {
  std::int64_t redelivery = 0;
  std::int64_t sequence = 0;
  std::int64_t stream = 0;
  std::string kind = "retry";
  bool was_lost = false;
};

std::vector<Stranded> stranded_in(Connection& connection, std::int64_t partition,
                                  std::int64_t most) {
  std::vector<Stranded> found;
  {
    auto again =
        connection.rows(sql::redeliveries_of_partition{.partition = partition, .most = most});
    while (again.step()) {
      found.push_back({again.redelivery(), again.sequence(), again.stream(),
                       std::string{again.kind()}, again.was_lost()});
    }
  }
  auto rows = connection.rows(sql::messages_of_partition{.partition = partition, .most = most});
  while (rows.step()) found.push_back({.sequence = rows.sequence(), .stream = rows.stream()});
  return found;
}

/// How the stream's parked messages differ from the planned ones; empty if they don't.
std::string changed_since(Connection& connection, const ParkedPrefix& planned) {
  auto now = connection.rows(sql::parked_head{.stream = planned.stream});
  if (!now.step()) return "nothing of it is parked any more";
  const GlobalSequence first{now.sequence()};
  if (first != planned.planned.front()) {
    return "event " + std::to_string(first.value()) + " is its first parked one now";
  }
  if (now.parked_at() == planned.parked_at) return {};
  return "it was retried, and parked again: " + std::string{now.error()};
}

}  // namespace

std::string in_words(std::span<const std::int64_t> sequences) {
  std::string text = in_words(static_cast<std::int64_t>(sequences.size()));
  text += ", " + std::to_string(sequences.front());
  if (sequences.size() > 1) text += " to " + std::to_string(sequences.back());
  return text;
}

bool has_many_later(Connection& connection, std::int64_t stream) {
  std::int64_t first = 0;
  {
    auto parked = connection.rows(sql::parked_after{.stream = stream, .after = 0, .most = 1});
    if (!parked.step()) return false;
    first = parked.sequence();
  }
  auto later = connection.rows(
      sql::has_redeliveries{.stream = stream, .first = first, .most = step_messages});
  return later.step() && later.has_more();
}

void StoredOperations::write(const std::function<void(Connection&)>& work) {
  // Notes are rolled back with the transaction.
  const auto before = current_;
  try {
    store_.database().write([&](Connection& connection) {
      current_ = before;
      work(connection);
    });
  } catch (...) {
    current_ = before;
    throw;
  }
}

// --- the log

void StoredOperations::act(const Action& action, FunctionRef<ActionEnd()> work) {
  current_ = Current{.action = action};
  try {
    const ActionEnd ended = work();
    end(ended, ended.finished ? "done" : "unfinished");
  } catch (const std::exception& error) {
    try {
      if (current_->number > 0) end({.detail = error.what()}, "failed");
    } catch (const std::exception&) {
      // The log shows it as unfinished, and the original error is reported.
    }
    current_.reset();
    throw;
  }
  current_.reset();
}

void StoredOperations::end(const ActionEnd& end, std::string_view state) {
  const bool is_as_noted =
      current_->number > 0 && current_->steps == 1 && state == "done" && current_->has_all();
  if (is_as_noted || (current_->number == 0 && end.changed == 0)) return;
  write([&](Connection& connection) {
    if (current_->number == 0) note_step(connection, current_->action.what, "", 0);
    std::optional<std::string> detail;
    if (current_->steps != 1 || state != "done") detail = end.detail;
    if (current_->steps == 1 && detail) {
      connection.run(sql::copy_action{.action = current_->number});
    }
    if (current_->steps > most_items) {
      detail->append("; the first ").append(std::to_string(most_items)).append(" steps are listed");
    }
    connection.run(sql::end_action{
        .action = current_->number, .changed = end.changed, .state = state, .detail = detail});
  });
}

void StoredOperations::note(Connection& connection, std::string_view who, std::string_view what,
                            const std::string& detail, std::int64_t count) {
  if (current_) return note_step(connection, what, detail, count);
  connection.run(sql::insert_action{
      .at = store_.database().now(), .who = who, .what = what, .detail = detail});
}

void StoredOperations::note_step(Connection& connection, std::string_view what,
                                 const std::string& detail, std::int64_t count) {
  const Action& action = current_->action;
  const Timestamp now = store_.database().now();
  // Incidental steps don't count towards the action.
  if (what == action.what) current_->done += count;
  if (current_->number == 0) {
    auto begun =
        connection.rows(sql::begin_action{.at = now,
                                          .who = action.who,
                                          .what = what,
                                          .selection = action.selection,
                                          .planned = action.planned,
                                          .done = current_->done,
                                          .state = current_->has_all() ? "done" : "unfinished",
                                          .detail = detail});
    begun.step();
    current_->number = begun.action();
    current_->steps = detail.empty() ? 0 : 1;
    return;
  }
  if (what == action.what && count > 0) {
    connection.run(sql::count_done{.action = current_->number, .count = count});
  }
  if (++current_->steps > most_items) return;
  if (current_->steps == 2) connection.run(sql::copy_action{.action = current_->number});
  connection.run(sql::insert_item{
      .item_of = current_->number, .at = now, .who = action.who, .what = what, .detail = detail});
}

// --- sending again

void StoredOperations::send_again(Connection& connection, Placement& placement, const Place& place,
                                  std::string_view kind) {
  const PartitionId partition =
      placement.find(place.sequence, place.stream, place.generation.partition_count);
  connection.run(sql::insert_redelivery{.partition = partition.number,
                                        .generation = place.generation.number,
                                        .sequence = place.sequence.value(),
                                        .stream = place.stream,
                                        .kind = kind,
                                        .now = store_.database().now(),
                                        .was_lost = place.was_lost});
}

std::int64_t StoredOperations::retry(std::int64_t stream, GlobalSequence through,
                                     std::string_view who) {
  const ParkedPrefix one{stream, through};
  const RetriedRuns retried = retry({&one, 1}, who);
  return retried.runs.front().joined + retried.more;
}

RetriedRuns StoredOperations::retry(std::span<const ParkedPrefix> prefixes, std::string_view who) {
  RetriedRuns done;
  ByStream retried;
  std::int64_t sent = 0;
  write([&](Connection& connection) {
    done.runs.clear();
    retried.clear();
    Placement placement{connection, store_.database(), partitioner_};
    placement.require_partitioner();
    for (const ParkedPrefix& prefix : prefixes) {
      const RetriedRun& run = done.runs.emplace_back(retry_one(connection, placement, prefix, who));
      const bool was_meant = run.joined > 0 || !prefix.planned.empty();
      if (was_meant && run.changed.empty() && prefix.with_followers) {
        retried[prefix.stream] = {prefix.through};
      }
    }
    // Also followers that a relay has parked meanwhile.
    sent = send_followers(connection, retried, who);
  });
  done.more = sent + send_more_followers(retried, sent, who);
  return done;
}

RetriedRun StoredOperations::retry_one(Connection& connection, Placement& placement,
                                       const ParkedPrefix& prefix, std::string_view who) {
  RetriedRun run;
  if (prefix.parked_at) run.changed = changed_since(connection, prefix);
  if (!run.changed.empty()) return run;
  std::vector<std::int64_t> parked;
  SentAgain all;
  {
    auto rows = connection.rows(
        sql::parked_prefix{.stream = prefix.stream, .through = prefix.through.value()});
    while (rows.step()) {
      const GlobalSequence sequence{rows.sequence()};
      parked.push_back(sequence.value());
      all.emplace(sequence.value(), rows.was_lost());
      // Messages counted by an earlier part of this run may still be parked, or be parked again.
      if (std::ranges::binary_search(prefix.planned, sequence)) {
        ++run.messages;
      } else if (prefix.planned.empty() || sequence > prefix.planned.front()) {
        ++run.joined;
      }
    }
  }
  if (parked.empty()) return run;
  std::string what = stream_name(connection, prefix.stream) + ": ";
  if (has_many_later(connection, prefix.stream)) {
    // The relay sends them once it has parked the later redeliveries.
    connection.run(sql::park_behind{.stream = prefix.stream, .through = prefix.through.value()});
    what += "through " + std::to_string(prefix.through.value()) + ", by the relay";
  } else {
    release(connection, placement, prefix.stream, std::move(all));
    what += in_words(parked);
  }
  note(connection, who, "retry", what, run.messages);
  return run;
}

void StoredOperations::release(Connection& connection, Placement& placement, std::int64_t stream,
                               SentAgain parked) {
  // Under the generation being drained: later messages of the stream wait there or after it.
  const Generation generation = open_generation(connection);
  for (const auto& [sequence, was_lost] : parked) {
    connection.run(sql::delete_parked{.sequence = sequence});
  }
  add_later(connection, stream, parked);
  for (const auto& [sequence, was_lost] : parked) {
    send_again(connection, placement, {GlobalSequence{sequence}, stream, generation, was_lost},
               "retry");
  }
}

void StoredOperations::add_later(Connection& connection, std::int64_t stream, SentAgain& all) {
  std::vector<std::int64_t> moved;
  {
    auto later =
        connection.rows(sql::later_redeliveries{.stream = stream, .first = all.begin()->first});
    while (later.step()) {
      moved.push_back(later.redelivery());
      all.emplace(later.sequence(), later.was_lost());
    }
  }
  for (const std::int64_t redelivery : moved) {
    connection.run(sql::delete_redelivery{.redelivery = redelivery});
  }
}

std::int64_t StoredOperations::republish(std::span<const GlobalSequence> sequences,
                                         std::string_view who) {
  return send_all_again(sequences, Why::republish, who);
}

std::int64_t StoredOperations::enqueue_missing(std::span<const GlobalSequence> sequences,
                                               std::string_view who) {
  return send_all_again(sequences, Why::missing, who);
}

std::int64_t StoredOperations::send_lost(std::span<const GlobalSequence> sequences,
                                         std::string_view who) {
  return send_all_again(sequences, Why::lost, who);
}

void StoredOperations::note_compared(PartitionId partition, std::optional<std::int64_t> first) {
  write([&](Connection& connection) {
    connection.run(sql::note_compared{.partition = partition.number, .first = first});
  });
}

/// Partitions with unknown contents at the broker, and whether they are stopped.
std::map<int, bool> StoredOperations::uncertain_partitions(Connection& connection) {
  std::map<int, bool> uncertain;
  auto rows = connection.rows(sql::uncertain_partitions{});
  while (rows.step()) uncertain.emplace(static_cast<int>(rows.partition()), rows.is_stopped());
  return uncertain;
}

/// Messages that reappear at the broker would be duplicated.
void StoredOperations::refuse_uncertain(int partition, bool is_stopped) {
  const std::string label = PartitionId{partition}.label();
  if (is_stopped) {
    throw UsageError{"partition " + label +
                     " is stopped because the broker lost messages, and resumes by itself once it "
                     "has them again; adopt it before they are published again"};
  }
  throw UsageError{"partition " + label +
                   " was adopted, and no worker has looked at the broker since: run one before "
                   "anything is published again"};
}

std::int64_t StoredOperations::send_all_again(std::span<const GlobalSequence> sequences, Why why,
                                              std::string_view who) {
  std::vector<std::int64_t> sent;
  write([&](Connection& connection) {
    sent.clear();
    const std::map<int, bool> uncertain = uncertain_partitions(connection);
    if (why == Why::lost && !uncertain.empty()) {
      refuse_uncertain(uncertain.begin()->first, uncertain.begin()->second);
    }
    Placement placement{connection, store_.database(), partitioner_};
    placement.require_partitioner();
    Locator locator{connection, placement, store_.database().now()};
    const Generation generation = open_generation(connection);
    for (const GlobalSequence sequence : sequences) {
      const auto located = locator.find(sequence);
      if (!located || located->message.state != MessageState::published) continue;
      if (located->is_missing != (why == Why::missing)) continue;
      if (why == Why::republish) {
        const auto of_event = uncertain.find(located->message.partition.number);
        // After an adoption the operator has declared them lost, and may republish them.
        if (of_event != uncertain.end() && of_event->second)
          refuse_uncertain(of_event->first, true);
      }
      const bool was_lost = why == Why::lost;
      // An event with a pending redelivery needs no second one.
      if (was_lost && located->message.redelivery > 0) continue;
      if (was_lost) {
        connection.run(sql::uncount_published{.partition = located->message.partition.number});
      }
      // An event that the broker lacks isn't repeated: it stays behind parked messages, and is
      // parked or discarded if the broker refuses it.
      send_again(connection, placement, {sequence, located->stream, generation, was_lost},
                 why == Why::republish ? "republish" : "retry");
      sent.push_back(sequence.value());
    }
    if (!sent.empty()) {
      note(connection, who, why == Why::missing ? "reconcile" : "republish", in_words(sent),
           std::ssize(sent));
    }
  });
  return static_cast<std::int64_t>(sent.size());
}

std::int64_t StoredOperations::rescue(std::string_view who) {
  std::vector<std::int64_t> sent;
  write([&](Connection& connection) {
    sent.clear();
    const auto unknown = unknown_partitions(connection);
    if (unknown.empty()) return;
    Placement placement{connection, store_.database(), partitioner_};
    placement.require_partitioner();
    const std::vector<Stranded> stranded = stranded_in(connection, unknown.front(), step_messages);
    const Generation generation = open_generation(connection);
    for (const Stranded& each : stranded) {
      if (each.redelivery > 0) {
        connection.run(sql::delete_redelivery{.redelivery = each.redelivery});
      } else {
        connection.run(sql::delete_messages{
            .partition = unknown.front(), .first = each.sequence, .last = each.sequence});
      }
      send_again(connection, placement,
                 {GlobalSequence{each.sequence}, each.stream, generation, each.was_lost},
                 each.kind);
      sent.push_back(each.sequence);
    }
    note(connection, who, "sync",
         "took out of unknown partition " + std::to_string(unknown.front()) + ": " + in_words(sent),
         std::ssize(sent));
  });
  return static_cast<std::int64_t>(sent.size());
}

// --- counts

std::int64_t StoredOperations::mend_counts(Mode mode, std::string_view who) {
  std::vector<Counts> wrong;
  store_.database().read([&](Connection& connection) { wrong = wrong_counts(connection); });
  if (wrong.empty() || mode == Mode::dry_run) return std::ssize(wrong);
  write([&](Connection& connection) {
    std::set<std::string> labels;
    wrong = wrong_counts(connection);
    for (const Counts& counts : wrong) {
      connection.run(sql::mend_counts{.partition = counts.partition,
                                      .parked = counts.parked,
                                      .redeliveries = counts.redeliveries});
      labels.insert(PartitionId{static_cast<int>(counts.partition)}.label());
    }
    std::string detail;
    for (const std::string& label : labels) detail += (detail.empty() ? "" : ", ") + label;
    note(connection, who, "count", detail);
  });
  return std::ssize(wrong);
}

// --- partitions

void StoredOperations::resize(int partition_count, std::string_view who) {
  write([&](Connection& connection) {
    const int before = current_generation(connection).partition_count;
    const std::int64_t last = last_event(connection);
    make_generation(connection, partition_count, last + 1);
    const std::string detail = std::to_string(before) + " to " + std::to_string(partition_count) +
                               " partitions from " + std::to_string(last + 1) + " on";
    note(connection, who, "resize", detail);
    database::note(
        connection, store_.database().now(),
        {.part = "outbox", .subject = "", .what = "resized", .who = who, .detail = detail});
    // This process's appends must learn of it, too.
    store_.database().forget_caches();
  });
}

void StoredOperations::adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence,
                             std::string_view who) {
  std::string detail = partition.label();
  if (broker_sequence) detail += " at " + std::to_string(*broker_sequence);
  let_go_on({partition, broker_sequence, true}, "adopt", detail, who);
}

void StoredOperations::resume(PartitionId partition, std::string_view who) {
  let_go_on({partition, std::nullopt, false}, "resume", partition.label(), who);
}

bool StoredOperations::try_now(PartitionId partition, std::string_view who) {
  bool is_retried = false;
  write([&](Connection& connection) {
    is_retried = connection.run(sql::try_now{.partition = partition.number}) == 1;
    if (is_retried) note(connection, who, "retry", "partition " + partition.label());
  });
  return is_retried;
}

void StoredOperations::let_go_on(const GoOn& how, std::string_view what, const std::string& detail,
                                 std::string_view who) {
  write([&](Connection& connection) {
    std::string why;
    {
      auto row = connection.rows(sql::stopped_by{.partition = how.partition.number});
      if (!row.step()) {
        throw NotFound{"there is no partition " + how.partition.label()};
      }
      const auto stopped = row.stopped();
      if (!stopped) {
        throw UsageError{"partition " + how.partition.label() +
                         " isn't stopped: there is nothing to " + std::string{what}};
      }
      why = *stopped;
    }
    if (!how.anew && why != to_string(StopReason::poison)) {
      throw UsageError{"partition " + how.partition.label() + " is stopped by " + why +
                       ": check the stream at the broker, then adopt the partition"};
    }
    connection.run(sql::adopt{.partition = how.partition.number,
                              .broker_sequence = how.broker_sequence,
                              .anew = how.anew,
                              .now = store_.database().now()});
    note(connection, who, what, detail + ", stopped by " + why);
    database::note(connection, store_.database().now(),
                   database::StateChange{.part = "outbox",
                                         .subject = how.partition.label(),
                                         .what = how.anew ? "adopted" : "resumed",
                                         .who = who,
                                         .detail = "stopped by " + why});
  });
}

}  // namespace stela::outbox
