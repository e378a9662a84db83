#include <stela/outbox/operations.hpp>

#include "database/database.hpp"
#include "database/host.hpp"
#include "outbox_sql/failures.hpp"
#include "outbox_sql/inspection.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/operations.hpp"
#include "outbox_sql/states.hpp"
#include "tables/comparison.hpp"
#include "tables/import.hpp"
#include "tables/outbox_view.hpp"
#include "tables/settings.hpp"
#include "tables/stored_operations.hpp"
#include "tables/upkeep.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>
#include <stela/outbox/outbox.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace stela {

namespace sql = outbox::sql;
using database::Connection;

namespace {

/// The most messages that one transaction changes.
constexpr auto step_messages = static_cast<std::size_t>(outbox::step_messages);

void require_outbox(Store& store) {
  bool is_there = false;
  store.database().read([&](Connection& connection) {
    auto tables = connection.rows(sql::has_outbox{});
    tables.step();
    is_there = tables.is_there() && outbox::find_settings(connection).has_value();
  });
  if (!is_there) {
    throw UsageError{"this database has no outbox; make one by opening it with a stela::Outbox"};
  }
  migrate_outbox(store);
}

std::string in_words(GlobalSequence sequence) {
  return "event " + std::to_string(sequence.value());
}

std::string in_words(std::int64_t messages, std::int64_t streams) {
  return std::to_string(messages) + (messages == 1 ? " message in " : " messages in ") +
         std::to_string(streams) + (streams == 1 ? " stream" : " streams");
}

std::string in_words(const ParkedSelection& selection) {
  if (!selection.stream.empty()) return "stream " + selection.stream;
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(selection.sequences.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(selection.sequences[i].value());
  }
  if (selection.sequences.size() > most) {
    text += " and " + std::to_string(selection.sequences.size() - most) + " more";
  }
  if (!text.empty()) return text;
  text = "all";
  if (!selection.type.empty()) text += ", type " + selection.type;
  if (!selection.error.empty()) text += ", error '" + selection.error + "'";
  if (!selection.group.empty()) text += ", group " + selection.group;
  return text;
}

std::string in_words(const RepublishSelection& selection) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& value) {
    text.append(text.empty() ? "" : ", ").append(what).append(value);
  };
  if (!selection.stream.empty()) add("stream ", selection.stream);
  if (selection.from.value() > 1) add("from ", std::to_string(selection.from.value()));
  if (selection.to < GlobalSequence::max()) add("to ", std::to_string(selection.to.value()));
  if (selection.since) add("since ", to_string(*selection.since));
  if (selection.until) add("until ", to_string(*selection.until));
  if (selection.partition) add("partition ", selection.partition->label());
  return text;
}

}  // namespace

class OutboxOperations::Impl {
 public:
  Impl(Store& the_store, const OperatorOptions& options)
      : store{the_store.anchor()},
        partitioner{*options.partitioner},
        who{options.who.empty() ? host::user() : options.who},
        port{store, partitioner},
        view{store, partitioner} {}

  /// The selected streams with their parked messages, in order.
  using Parked = outbox::ByStream;

  static bool has_filter(const ParkedSelection& selection) {
    return !selection.type.empty() || !selection.error.empty() || !selection.group.empty();
  }

  static void check(const ParkedSelection& selection) {
    const int given = (selection.sequences.empty() ? 0 : 1) + (selection.stream.empty() ? 0 : 1) +
                      (selection.all ? 1 : 0);
    if (given != 1) throw UsageError{"say which messages: some sequences, a stream, or all"};
    if (!selection.all && has_filter(selection)) {
      throw UsageError{"a type, an error and a group choose among all parked messages"};
    }
  }

  /// Finds the parked messages of one stream or of all.
  Parked find_parked(const ParkedSelection& selection) {
    Parked found;
    store.database().read([&](Connection& connection) {
      if (!selection.stream.empty()) {
        auto number = connection.rows(sql::stream_number{.name = selection.stream});
        if (!number.step()) {
          throw NotFound{"there is no stream '" + selection.stream + "'"};
        }
        add_parked(connection, number.stream(), found);
        return;
      }
      std::int64_t last = 0;
      for (bool more = true; more;) {
        {
          auto next =
              connection.rows(sql::parked_streams{.after = last,
                                                  .type = database::or_null(selection.type),
                                                  .error = database::or_null(selection.error),
                                                  .failure = database::or_null(selection.group)});
          more = next.step();
          if (more) last = next.stream();
        }
        if (more) add_parked(connection, last, found);
      }
    });
    return found;
  }

  static void add_parked(Connection& connection, std::int64_t stream, Parked& found) {
    auto rows = connection.rows(
        sql::parked_prefix{.stream = stream, .through = GlobalSequence::max().value()});
    while (rows.step()) found[stream].emplace_back(rows.sequence());
  }

  /// Finds parked messages by sequence; each must be parked.
  Parked find_parked(std::vector<GlobalSequence> sequences) {
    std::sort(sequences.begin(), sequences.end());
    sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
    Parked found;
    store.database().read([&](Connection& connection) {
      for (const GlobalSequence sequence : sequences) {
        auto row = connection.rows(sql::find_parked{.sequence = sequence.value()});
        if (!row.step()) throw NotFound{in_words(sequence) + " isn't parked"};
        found[row.stream()].push_back(sequence);
      }
      for (auto& [stream, meant] : found) {
        require_prefix(connection, stream, meant);
        add_followers(connection, stream, meant);
      }
    });
    return found;
  }

  /// Adds messages that are parked only because of `meant`.
  static void add_followers(Connection& connection, std::int64_t stream,
                            std::vector<GlobalSequence>& meant) {
    auto rows =
        connection.rows(sql::parked_after{.stream = stream,
                                          .after = meant.back().value(),
                                          .most = std::numeric_limits<std::int64_t>::max()});
    while (rows.step() && rows.reason() == to_string(SetAsideReason::behind)) {
      meant.emplace_back(rows.sequence());
    }
  }

  /// UsageError if a message parked before the last of `meant` isn't included.
  static void require_prefix(Connection& connection, std::int64_t stream,
                             const std::vector<GlobalSequence>& meant) {
    auto rows =
        connection.rows(sql::parked_prefix{.stream = stream, .through = meant.back().value()});
    while (rows.step()) {
      const GlobalSequence sequence{rows.sequence()};
      if (std::binary_search(meant.begin(), meant.end(), sequence)) continue;
      const auto behind = std::upper_bound(meant.begin(), meant.end(), sequence);
      throw UsageError{in_words(*behind) + " comes after " + in_words(sequence) +
                       " of its stream, which is parked too; retry that one with it, or the "
                       "whole stream"};
    }
  }

  /// Adds when each message was parked, if it is parked.
  std::vector<PlannedDiscard> with_times(std::span<const GlobalSequence> sequences) {
    std::vector<PlannedDiscard> planned;
    store.database().read([&](Connection& connection) {
      planned.clear();
      for (const GlobalSequence sequence : sequences) {
        planned.push_back({.sequence = sequence});
        auto row = connection.rows(sql::find_parked{.sequence = sequence.value()});
        if (row.step()) planned.back().parked_at = row.since();
      }
    });
    return planned;
  }

  /// How many messages would be resent without these, some of which may not be parked.
  std::int64_t count_followers(std::span<const GlobalSequence> sequences) {
    std::int64_t count = 0;
    store.database().read([&](Connection& connection) {
      Parked gone;
      for (const GlobalSequence sequence : sequences) {
        auto row = connection.rows(sql::find_parked{.sequence = sequence.value()});
        if (row.step()) gone[row.stream()].push_back(sequence);
      }
      for (const auto& [stream, those] : gone) count += followers_of(connection, stream, those);
    });
    return count;
  }

  static std::int64_t followers_of(Connection& connection, std::int64_t stream,
                                   const std::vector<GlobalSequence>& gone) {
    std::int64_t count = 0;
    auto rows = connection.rows(sql::parked_after{
        .stream = stream, .after = 0, .most = std::numeric_limits<std::int64_t>::max()});
    while (rows.step()) {
      const GlobalSequence sequence{rows.sequence()};
      if (std::binary_search(gone.begin(), gone.end(), sequence)) continue;
      const bool follows = rows.reason() == to_string(SetAsideReason::behind);
      if (sequence < gone.front() || !follows) break;
      ++count;
    }
    return count;
  }

  AppliedPlan apply(const RetryPlan& plan, const std::stop_token& stop);
  static void add_retried(AppliedPlan& applied, std::span<const ParkedRun* const> runs,
                          std::span<const outbox::ParkedPrefix> step,
                          const outbox::RetriedRuns& retried);
  Affected apply(const DiscardPlan& plan, const std::stop_token& stop);
  void report(std::string_view stage, std::int64_t finished, std::int64_t total) const {
    if (progress) progress({stage, finished, total});
  }

  void require_discardable(GlobalSequence sequence) {
    const auto message = view.show(sequence);
    if (!message) throw NotFound{in_words(sequence) + " has no message"};
    const MessageState state = message->state;
    if (state == MessageState::parked) return;
    const bool is_over = state == MessageState::published || state == MessageState::discarded;
    if (is_over && message->redelivery == 0) {
      throw UsageError{in_words(sequence) + " is " + std::string{to_string(state)} + " already"};
    }
    const auto status = view.status();
    const auto partition =
        std::find_if(status.partitions.begin(), status.partitions.end(),
                     [&](const PartitionStatus& p) { return p.id == message->partition; });
    if (partition != status.partitions.end() && partition->stopped) return;
    throw UsageError{in_words(sequence) +
                     " is pending: only parked messages, and pending "
                     "messages of a stopped partition, can be discarded"};
  }

  Store& store;
  const Partitioner& partitioner;
  const std::string who;
  outbox::StoredOperations port;
  outbox::OutboxView view;
  outbox::OnProgress progress;
};

OutboxOperations::OutboxOperations(Store& store, const OperatorOptions& options) {
  require_outbox(store);
  impl_ = std::make_unique<Impl>(store, options);
}

OutboxOperations::~OutboxOperations() = default;

void OutboxOperations::on_progress(std::function<void(const Progress&)> listener) {
  impl_->progress = std::move(listener);
}

// --- looking

OutboxStatus OutboxOperations::status() {
  return impl_->view.status();
}
std::vector<OutboxMessage> OutboxOperations::list(const MessageQuery& query) {
  return impl_->view.page(query).messages;
}
MessagePage OutboxOperations::page(const MessageQuery& query) {
  return impl_->view.page(query);
}
std::optional<OutboxMessage> OutboxOperations::show(GlobalSequence sequence) {
  return impl_->view.show(sequence);
}
std::vector<PublishedBatch> OutboxOperations::batches(std::optional<PartitionId> partition,
                                                      int limit) {
  return impl_->view.batches(partition, limit);
}
std::vector<OperatorAction> OutboxOperations::actions(const ActionQuery& query) {
  return impl_->view.actions(query);
}

// --- messages

Affected OutboxOperations::retry(const ParkedSelection& selection, Mode mode) {
  const RetryPlan plan = plan_retry(selection);
  if (mode == Mode::dry_run) return {.messages = plan.messages(), .streams = std::ssize(plan.runs)};
  const AppliedPlan applied = apply(plan);
  return {.messages = applied.messages,
          .streams = applied.streams,
          .changed = applied.messages_changed()};
}

RetryPlan OutboxOperations::plan_retry(const ParkedSelection& selection) {
  constexpr std::size_t most_streams = 1'000'000;
  Impl::check(selection);
  auto parked = selection.sequences.empty() ? impl_->find_parked(selection)
                                            : impl_->find_parked(selection.sequences);
  if (parked.size() > most_streams) {
    throw UsageError{"more than a million streams are meant; select fewer of them"};
  }
  RetryPlan plan{.selection = in_words(selection)};
  for (auto& [stream, sequences] : parked) {
    plan.runs.push_back({.sequences = std::move(sequences), .stream_number = stream});
  }
  impl_->store.database().read([&](Connection& connection) {
    for (ParkedRun& run : plan.runs) {
      auto head = connection.rows(sql::find_parked{.sequence = run.head().value()});
      // If the row is gone by now, applying the plan will report a change.
      if (head.step()) {
        run.parked_at = head.since();
        run.error = head.error();
      }
      head.run();
      auto name = connection.rows(sql::stream_text{.stream = run.stream_number});
      if (name.step()) run.stream = name.name();
    }
  });
  return plan;
}

AppliedPlan OutboxOperations::apply(const RetryPlan& plan, std::stop_token stop) {
  AppliedPlan applied;
  const auto work = [&] {
    applied = impl_->apply(plan, stop);
    std::string detail = in_words(applied.messages, applied.streams);
    if (applied.joined > 0) detail += ", of which " + std::to_string(applied.joined) + " joined";
    return outbox::ActionEnd{applied.messages_changed(), detail, applied.finished};
  };
  impl_->port.act(
      {.what = "retry", .who = impl_->who, .selection = plan.selection, .planned = plan.messages()},
      work);
  return applied;
}

AppliedPlan OutboxOperations::Impl::apply(const RetryPlan& plan, const std::stop_token& stop) {
  // Each stream takes several statements, and the writer's lock mustn't be held for long.
  constexpr std::size_t step_streams = 100;
  AppliedPlan applied;
  std::vector<outbox::ParkedPrefix> step;
  std::vector<const ParkedRun*> runs;
  std::int64_t messages = 0;
  std::int64_t looked_at = 0;
  const std::int64_t total = plan.messages();
  const auto carry_out = [&] {
    add_retried(applied, runs, step, port.retry(step, who));
    step.clear();
    runs.clear();
    looked_at += std::exchange(messages, 0);
    report("retry", looked_at, total);
    applied.finished = looked_at == total || !stop.stop_requested();
  };
  for (const ParkedRun& run : plan.runs) {
    if (!applied.finished) break;
    const auto is_left_alone = [&] {
      return !applied.changed.empty() &&
             applied.changed.back().planned.stream_number == run.stream_number;
    };
    // A long run takes several transactions. The first one checks the plan for all of them.
    for (std::span<const GlobalSequence> left{run.sequences};
         !left.empty() && !is_left_alone() && applied.finished;) {
      const auto part = left.first(std::min(step_messages, left.size()));
      left = left.subspan(part.size());
      step.push_back({.stream = run.stream_number,
                      .through = part.back(),
                      .planned = part,
                      .with_followers = left.empty()});
      if (part.data() == run.sequences.data()) step.back().parked_at = run.parked_at;
      runs.push_back(&run);
      messages += std::ssize(part);
      if (messages >= outbox::step_messages || step.size() == step_streams) carry_out();
    }
  }
  if (!step.empty() && applied.finished) carry_out();
  return applied;
}

void OutboxOperations::Impl::add_retried(AppliedPlan& applied,
                                         std::span<const ParkedRun* const> runs,
                                         std::span<const outbox::ParkedPrefix> step,
                                         const outbox::RetriedRuns& retried) {
  applied.messages += retried.more;
  applied.joined += retried.more;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const outbox::RetriedRun& one = retried.runs[i];
    if (!one.changed.empty()) {
      applied.changed.push_back({*runs[i], one.changed});
      continue;
    }
    applied.streams += step[i].parked_at ? 1 : 0;
    applied.messages += one.messages + one.joined;
    applied.joined += one.joined;
    applied.gone += std::ssize(step[i].planned) - one.messages;
  }
}

std::vector<FailureGroup> OutboxOperations::groups() {
  std::vector<FailureGroup> groups;
  impl_->store.database().read([&](Connection& connection) {
    groups.clear();
    auto rows = connection.rows(sql::failure_groups{});
    while (rows.step()) {
      groups.push_back({.group = std::string{rows.failure()},
                        .streams = rows.streams(),
                        .first_at = rows.first_at(),
                        .last_at = rows.last_at(),
                        .sample = {.sequence = GlobalSequence{rows.sample()}}});
    }
  });
  for (FailureGroup& group : groups) {
    if (auto sample = impl_->view.show(group.sample.sequence)) group.sample = std::move(*sample);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FailureGroup& a, const FailureGroup& b) {
    return a.streams > b.streams;
  });
  return groups;
}

DiscardPlan OutboxOperations::plan_discard(const ParkedSelection& selection) {
  Impl::check(selection);
  if (!selection.type.empty() || !selection.error.empty()) {
    throw UsageError{"a type and an error select messages to retry, not messages to discard"};
  }
  std::vector<GlobalSequence> sequences = selection.sequences;
  DiscardPlan plan{.selection = in_words(selection)};
  if (sequences.empty()) {
    const auto parked = impl_->find_parked(selection);
    plan.affected.streams = static_cast<std::int64_t>(parked.size());
    for (const auto& [stream, those] : parked) {
      const auto end = selection.group.empty() ? those.end() : those.begin() + 1;
      sequences.insert(sequences.end(), those.begin(), end);
    }
  } else {
    std::set<std::string> streams;
    for (const GlobalSequence sequence : sequences) {
      impl_->require_discardable(sequence);
      streams.insert(impl_->view.show(sequence).value_or(OutboxMessage{}).stream);
    }
    plan.affected.streams = static_cast<std::int64_t>(streams.size());
  }
  std::sort(sequences.begin(), sequences.end());
  sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
  plan.messages = impl_->with_times(sequences);
  plan.affected.messages = static_cast<std::int64_t>(sequences.size());
  plan.affected.followers = impl_->count_followers(sequences);
  return plan;
}

Affected OutboxOperations::discard(const ParkedSelection& selection, Mode mode) {
  const DiscardPlan plan = plan_discard(selection);
  return mode == Mode::dry_run ? plan.affected : apply(plan);
}

Affected OutboxOperations::apply(const DiscardPlan& plan, std::stop_token stop) {
  Affected affected;
  const auto work = [&] {
    affected = impl_->apply(plan, stop);
    std::string detail = in_words(affected.messages, affected.streams);
    if (affected.followers > 0) {
      detail += "; retried after them: " + std::to_string(affected.followers);
    }
    return outbox::ActionEnd{affected.changed, detail, affected.finished};
  };
  impl_->port.act({.what = "discard",
                   .who = impl_->who,
                   .selection = plan.selection,
                   .planned = std::ssize(plan.messages),
                   .leads_on = plan.affected.followers > outbox::step_messages},
                  work);
  return affected;
}

Affected OutboxOperations::Impl::apply(const DiscardPlan& plan, const std::stop_token& stop) {
  Affected affected;
  std::set<std::int64_t> streams;
  // Begins with the last messages, so that no message that will be discarded is resent meanwhile.
  std::span<const PlannedDiscard> left{plan.messages};
  while (!left.empty() && affected.finished) {
    const auto those = left.last(std::min(step_messages, left.size()));
    left = left.first(left.size() - those.size());
    outbox::GivenUp given_up = port.discard(those, who);
    streams.merge(given_up.streams);
    affected.messages += given_up.messages;
    affected.followers += given_up.followers;
    affected.changed = std::ssize(plan.messages) - std::ssize(left) - affected.messages;
    report("discard", affected.messages + affected.changed, std::ssize(plan.messages));
    affected.finished = left.empty() || !stop.stop_requested();
  }
  affected.streams = std::ssize(streams);
  return affected;
}

Affected OutboxOperations::republish(const RepublishSelection& selection, Mode mode,
                                     std::stop_token stop) {
  const bool bounded = selection.from.value() > 1 || selection.to < GlobalSequence::max() ||
                       selection.since || selection.until || !selection.stream.empty() ||
                       selection.partition;
  if (!bounded) {
    throw UsageError{
        "name the events to republish: a range of sequences or times, or a "
        "stream"};
  }
  Affected affected;
  const auto work = [&] {
    affected = outbox::republish(impl_->store, impl_->port, impl_->partitioner,
                                 {selection, mode, impl_->who, impl_->progress, std::move(stop)});
    return outbox::ActionEnd{.detail = in_words(affected.messages, affected.streams),
                             .finished = !affected.next};
  };
  impl_->port.act({.what = "republish", .who = impl_->who, .selection = in_words(selection)}, work);
  return affected;
}

Reconciled OutboxOperations::reconcile(GlobalSequence from, Mode mode) {
  Reconciled result;
  const auto work = [&] {
    result = outbox::reconcile(impl_->store, impl_->port, impl_->partitioner,
                               {from, mode, impl_->who, impl_->progress});
    return outbox::ActionEnd{.detail = std::to_string(result.missing) + " messages"};
  };
  impl_->port.act(
      {.what = "reconcile", .who = impl_->who, .selection = "from " + std::to_string(from.value())},
      work);
  return result;
}

Compared OutboxOperations::compare(BrokerContents& broker, GlobalSequence from, Mode mode) {
  outbox::Comparison comparison{impl_->store, impl_->partitioner, impl_->progress};
  comparison.read(broker, from);
  Compared result;
  const auto work = [&] {
    result = comparison.carry_out(impl_->port, {from, mode, impl_->who});
    return outbox::ActionEnd{.detail = std::to_string(result.missing) + " messages"};
  };
  impl_->port.act({.what = "republish",
                   .who = impl_->who,
                   .selection = "missing at the broker, from " + std::to_string(from.value())},
                  work);
  return result;
}

ImportPlan OutboxOperations::plan_import(BrokerArchive& broker) {
  return outbox::Import{impl_->store, impl_->progress}.plan(broker);
}

AppliedImport OutboxOperations::apply(const ImportPlan& plan, BrokerArchive& broker,
                                      std::stop_token stop) {
  AppliedImport applied;
  const auto work = [&] {
    applied = outbox::Import{impl_->store, impl_->progress}.apply(plan, broker, impl_->port,
                                                                  impl_->who, stop);
    return outbox::ActionEnd{applied.changed,
                             in_words(applied.imported, applied.streams) + ", from the broker",
                             applied.finished};
  };
  impl_->port.act({.what = "import", .who = impl_->who, .planned = plan.fitting}, work);
  return applied;
}

Purged OutboxOperations::purge(std::chrono::hours older_than, Mode mode) {
  if (older_than.count() < 1) throw UsageError{"purged records must be at least an hour old"};
  if (mode == Mode::carry_out) {
    impl_->port.write([&](Connection& connection) {
      impl_->port.note(connection, impl_->who, "purge",
                       "records older than " + std::to_string(older_than.count()) + " h");
    });
  }
  return outbox::purge(impl_->store, {.older_than = older_than, .mode = mode});
}

// --- partitions

Resized OutboxOperations::resize(int partition_count) {
  const OutboxStatus before = impl_->view.status();
  Resized resized{before.partition_count, partition_count, before.generations.back().number};
  if (partition_count == before.partition_count) return resized;
  impl_->port.resize(partition_count, impl_->who);
  resized.generation = impl_->view.status().generations.back().number;
  return resized;
}

Synced OutboxOperations::sync(bool prune, Mode mode) {
  Synced synced = outbox::sync(impl_->store, prune, mode, impl_->who);
  if (mode == Mode::dry_run) {
    const OutboxStatus status = impl_->view.status();
    for (const PartitionStatus& partition : status.partitions) {
      const auto& added = synced.added;
      const bool is_added = std::find(added.begin(), added.end(), partition.id) != added.end();
      if (partition.stopped != StopReason::missing || is_added) continue;
      synced.rescued += partition.pending + partition.redeliveries;
    }
    return synced;
  }
  // A recreated row doesn't know its partition's pending messages.
  if (!synced.added.empty()) impl_->port.mend_counts(mode, impl_->who);
  const auto rescue = [&] {
    while (const std::int64_t rescued = impl_->port.rescue(impl_->who)) synced.rescued += rescued;
    return outbox::ActionEnd{.detail = "took out of unknown partitions: " +
                                       std::to_string(synced.rescued) + " messages"};
  };
  impl_->port.act({.what = "sync", .who = impl_->who}, rescue);
  return synced;
}

void OutboxOperations::resume(PartitionId partition) {
  impl_->port.resume(partition, impl_->who);
}

bool OutboxOperations::try_now(PartitionId partition) {
  return impl_->port.try_now(partition, impl_->who);
}

void OutboxOperations::adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence) {
  impl_->port.adopt(partition, broker_sequence, impl_->who);
}

}  // namespace stela
