// outbox partitions list, sync, resize, adopt, retry, resume.
#include "asked_broker.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "description/outbox.hpp"
#include "store_session.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace stela::tool {
namespace {

int list_partitions(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  const OutboxStatus seen = session.operations().status();
  if (call.out.is_json()) {
    print_list(call.out, description::partition, partitions_of(seen));
  } else {
    print_partitions(seen, call.out);
  }
  return done;
}

int sync(Invocation& call) {
  // Also opened for a dry run, which makes the changes and rolls them back.
  StoreSession session{call};
  const bool dry = call.arguments.has("--dry-run");
  const Synced synced = session.operations().sync(call.arguments.has("--prune"),
                                                  dry ? Mode::dry_run : Mode::carry_out);
  if (call.out.is_json()) {
    print_json(call.out, description::synced, synced, {{"dry_run", dry}});
    return done;
  }
  const std::string would = dry ? "would be " : "";
  call.out.line(synced.added.empty() ? "No partitions are missing."
                                     : would + "added: " + labels_of(synced.added));
  if (call.arguments.has("--prune")) {
    call.out.line(synced.retired.empty() ? "No partitions to retire."
                                         : would + "retired: " + labels_of(synced.retired));
  }
  if (!synced.parked.empty()) {
    call.out.line("Not retired: " + labels_of(synced.parked) + ". Messages are parked there → " +
                  way_to_unpark(call.app.name + ' '));
  }
  return done;
}

int resize(Invocation& call) {
  const auto count = static_cast<int>(
      to_integer(call.arguments.operands().front(), "the number of partitions", {1, 1024}));
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  const bool dry = call.arguments.has("--dry-run");
  Resized resized{.before = session.operations().status().partition_count, .after = count};
  if (!dry) resized = session.operations().resize(count);
  if (call.out.is_json()) {
    print_json(call.out, description::resized, resized, {{"dry_run", dry}});
  } else if (resized.before == resized.after) {
    call.out.line("Already " + counted(count, "partition") + "; nothing to do.");
  } else if (dry) {
    call.out.line("Would go from " + std::to_string(resized.before) + " to " +
                  counted(count, "partition") + ".");
  } else {
    call.out.line("From " + std::to_string(resized.before) + " to " +
                  counted(resized.after, "partition") +
                  ": new events are published after those already pending.");
  }
  return done;
}

std::string_view warning_of(const PartitionStatus& stopped) {
  if (stopped.stopped == StopReason::foreign_writer) {
    return "Stop the other writer first, or both stop again. ";
  }
  if (stopped.stopped == StopReason::store_went_back) {
    return "If this is a copy of a database that is still in use, it must have its own stream by "
           "now (nats.stream), or it publishes into the original's. ";
  }
  return "";
}

/// True if adopting helps; other stops have other remedies.
bool is_adoptable(const PartitionStatus& partition) {
  return partition.stopped && partition.stopped != StopReason::poison &&
         partition.stopped != StopReason::missing && partition.stopped != StopReason::unrecognized;
}

/// The named partition in any state, or all stopped ones.
std::vector<PartitionStatus> partitions_to_adopt(Invocation& call, StoreSession& session) {
  const auto& named = call.arguments.operands();
  std::vector<PartitionStatus> chosen;
  for (const PartitionStatus& each : session.operations().status().partitions) {
    const bool is_meant =
        named.empty() ? is_adoptable(each) : each.id == to_partition(named.front());
    if (is_meant) {
      chosen.push_back(each);
    } else if (named.empty() && each.stopped) {
      call.out.note("Partition " + each.id.label() + " stays stopped (" + word_of(each.stopped) +
                    ") → " + way_out_of(each, call.app.name + ' '));
    }
  }
  if (chosen.empty() && !named.empty()) chosen.push_back({.id = to_partition(named.front())});
  return chosen;
}

std::string question_of(std::span<const PartitionStatus> partitions) {
  std::string labels;
  std::string warnings;
  for (const PartitionStatus& each : partitions) {
    labels.append(labels.empty() ? "" : " ").append(each.id.label());
    const std::string_view warning = warning_of(each);
    if (warnings.find(warning) == std::string::npos) warnings += warning;
  }
  return (partitions.size() > 1 ? "Partitions " : "Partition ") + labels +
         " will resume from the broker's position. " + warnings + "Continue?";
}

std::uint64_t last_of(const Answer& answer) {
  return std::max(answer.last_sequence,
                  answer.found.empty() ? 0 : answer.found.back().broker_sequence);
}

/// Refuses a number that the broker lacks, if the broker can be queried.
void check_at_broker(Invocation& call, StoreSession& session, PartitionId partition,
                     std::uint64_t at) {
  const std::string number = std::to_string(at);
  const std::string unchecked = "Broker sequence " + number + " isn't checked: ";
  if (!call.settings().is_set("nats.url")) return call.out.note(unchecked + "pass --nats URL");
  AskedBroker broker{call.settings(), session.operations().status().fence, session.partitioner()};
  auto answer = broker.connect();
  if (answer && answer->kind == Answer::Kind::connected) answer = broker.read_back(partition, at);
  if (!answer) return call.out.note(unchecked + "no answer from the broker");
  if (answer->kind != Answer::Kind::read_back) return call.out.note(unchecked + answer->detail);
  const std::uint64_t last = last_of(*answer);
  if (at > last) {
    throw Exit{failed, "the broker has no message of partition " + partition.label() + " at " +
                           number + " or after it" +
                           (last > 0 ? "; its last is " + std::to_string(last) : "")};
  }
  if (at > 0 && at + 1 < answer->first_sequence) {
    throw Exit{failed, "the broker's stream begins at " + std::to_string(answer->first_sequence) +
                           ", after " + number};
  }
}

/// The position that a partition would continue after, according to its broker now.
class Preview {
 public:
  Preview(Invocation& call, StoreSession& session)
      : call_{call},
        store_{session.store()},
        store_id_{session.store().id().to_string()},
        broker_{call.settings(), session.operations().status().fence, session.partitioner()} {
    const auto connected = broker_.connect();
    if (connected && connected->kind == Answer::Kind::connected) return;
    throw Exit{failed, connected ? connected->detail : "no answer from the broker"};
  }

  void show(const PartitionStatus& partition, std::optional<std::uint64_t> at) {
    const std::uint64_t known = at.value_or(partition.broker_sequence);
    const Answer answer = read(partition.id, known);
    const std::uint64_t last = last_of(answer);
    const std::vector<bool> are_ours = of_this_database(answer.found);
    std::int64_t ours = 0;
    std::int64_t others = 0;
    bool is_displaced = false;
    for (std::size_t i = 0; i < answer.found.size(); ++i) {
      if (answer.found[i].broker_sequence > known) ++(are_ours[i] ? ours : others);
      is_displaced = is_displaced || (answer.found[i].broker_sequence == known && !are_ours[i]);
    }
    if (call_.out.is_json()) {
      return call_.out.json(to_json({{"partition", partition.id.label()},
                                     {"known", static_cast<std::int64_t>(known)},
                                     {"last", static_cast<std::int64_t>(last)},
                                     {"ours", ours},
                                     {"others", others},
                                     {"has_more", answer.has_more},
                                     {"dry_run", true}}));
    }
    const std::string more = answer.has_more ? "at least " : "";
    std::string text = "Partition " + partition.id.label() + " would continue after " +
                       (answer.has_more ? "the last message" : std::to_string(last)) +
                       "; it knows of " + std::to_string(known) + ". After that, " + more +
                       counted(ours, "message") + " of this database would be marked, and " + more +
                       counted(others, "other") + " passed over.";
    if (last < known) text += missing(partition, last);
    if (is_displaced) {
      text += " Another message stands at " + std::to_string(known) +
              ", where one of this database was: '" + call_.app.name +
              " outbox reconcile --against-broker --dry-run' counts what is missing.";
    }
    call_.out.line(text);
  }

 private:
  Answer read(PartitionId partition, std::uint64_t from) {
    const auto answer = broker_.read_back(partition, std::max<std::uint64_t>(from, 1));
    if (answer && answer->kind == Answer::Kind::read_back) return *answer;
    throw Exit{failed, "partition " + partition.label() + ": " +
                           (answer ? answer->detail : "no answer from the broker")};
  }
  /// Tells which messages carry an event of this database.
  std::vector<bool> of_this_database(const std::vector<FoundMessage>& found) {
    std::vector<GlobalSequence> sequences;
    for (const FoundMessage& each : found) {
      if (each.is_ours && each.store_id == store_id_) sequences.push_back(each.sequence);
    }
    std::sort(sequences.begin(), sequences.end());
    sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
    std::map<GlobalSequence, std::string> ids;
    for (const StoredEvent& event : store_.read_at(sequences)) {
      ids.emplace(event.sequence, event.id.to_string());
    }
    std::vector<bool> are_ours;
    for (const FoundMessage& each : found) {
      const auto id = ids.find(each.sequence);
      are_ours.push_back(each.store_id == store_id_ && id != ids.end() &&
                         each.message_id.starts_with(id->second));
    }
    return are_ours;
  }
  /// Tells what was published after `last`, and how to count it.
  std::string missing(const PartitionStatus& partition, std::uint64_t last) {
    const Answer end = read(partition.id, last);
    const std::string tool = "'" + call_.app.name + " outbox ";
    const bool is_told = !end.found.empty() && end.found.back().redelivery == 0 &&
                         of_this_database(end.found).back();
    if (last > 0 && !is_told) {
      return " Its last message doesn't tell what is missing: " + tool +
             "reconcile --against-broker --dry-run' counts it.";
    }
    const std::string text =
        " What was published after broker sequence " + std::to_string(last) + " is missing there: ";
    const std::int64_t from = last > 0 ? end.found.back().sequence.value() + 1 : 1;
    return text + tool + "republish --from " + std::to_string(from) + " --to " +
           std::to_string(partition.published_through.value()) + " --partition " +
           partition.id.label() + " --dry-run' counts it.";
  }

  Invocation& call_;
  Store& store_;
  const std::string store_id_;
  AskedBroker broker_;
};

int preview_adoption(Invocation& call, StoreSession& session,
                     std::span<const PartitionStatus> partitions, std::optional<std::uint64_t> at) {
  if (!call.settings().is_set("nats.url")) {
    throw Misuse{"a dry run asks the broker: pass --nats URL"};
  }
  Preview preview{call, session};
  for (const PartitionStatus& each : partitions) preview.show(each, at);
  return done;
}

/// The given number, which must be for a single partition.
std::optional<std::uint64_t> place_to_adopt(const Arguments& arguments) {
  const auto sequence = arguments.integer("--broker-sequence", {0, largest});
  for (const char* const option : {"--nats", "--stream", "--prefix"}) {
    if (sequence || arguments.has("--dry-run") || !arguments.has(option)) continue;
    throw Misuse{std::string{option} + " is for --broker-sequence and --dry-run"};
  }
  if (!sequence) return std::nullopt;
  if (arguments.has("--all")) {
    throw Misuse{"--broker-sequence is of one partition; don't combine it with --all"};
  }
  return static_cast<std::uint64_t>(*sequence);
}

int adopt(Invocation& call) {
  const bool all = call.arguments.has("--all");
  if (all == !call.arguments.operands().empty()) {
    throw Misuse{"which partition? Pass PARTITION or --all"};
  }
  const auto at = place_to_adopt(call.arguments);
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  const std::vector<PartitionStatus> partitions = partitions_to_adopt(call, session);
  if (partitions.empty()) {
    call.out.note("No partition to adopt.");
    return done;
  }
  if (call.arguments.has("--dry-run")) return preview_adoption(call, session, partitions, at);
  if (at) check_at_broker(call, session, partitions.front().id, *at);
  if (!call.confirm(question_of(partitions))) return failed;
  for (const PartitionStatus& each : partitions) {
    try {
      session.operations().adopt(each.id, at);
      call.out.note("Partition " + each.id.label() + " resumes.");
    } catch (const UsageError& e) {
      // The partition may have resumed by itself meanwhile.
      if (!all) throw;
      call.out.note(e.what());
    }
  }
  return done;
}

int resume_partition(Invocation& call) {
  const PartitionId partition = to_partition(call.arguments.operands().front());
  StoreSession session{call};
  session.operations().resume(partition);
  call.out.note("Partition " + partition.label() + " resumes.");
  return done;
}

bool is_backing_off(const PartitionStatus& partition) {
  return partition.attempts > 0 && !partition.stopped;
}

/// The named partition, or all that back off.
std::vector<PartitionStatus> partitions_to_retry(Invocation& call, StoreSession& session) {
  std::vector<PartitionStatus> partitions = session.operations().status().partitions;
  const auto& named = call.arguments.operands();
  if (named.empty()) {
    std::erase_if(partitions, [](const auto& each) { return !is_backing_off(each); });
    return partitions;
  }
  const PartitionId partition = to_partition(named.front());
  std::erase_if(partitions, [&](const auto& each) { return each.id != partition; });
  if (partitions.empty()) throw NotFound{"there is no partition " + partition.label()};
  return partitions;
}

int retry_partitions(Invocation& call) {
  const bool all = call.arguments.has("--all");
  if (all == !call.arguments.operands().empty()) {
    throw Misuse{"which partition? Pass PARTITION or --all"};
  }
  const bool dry = call.arguments.has("--dry-run");
  StoreSession session{call, {.only_reads = dry}};
  const std::vector<PartitionStatus> partitions = partitions_to_retry(call, session);
  if (partitions.empty()) call.out.note("No partition is backing off.");
  for (const PartitionStatus& each : partitions) {
    const std::string label = each.id.label();
    if (dry ? is_backing_off(each) : session.operations().try_now(each.id)) {
      const std::string error = in_one_line(each.last_error);
      if (call.out.is_json()) {
        call.out.json(to_json({{"partition", label}, {"error", error}, {"dry_run", dry}}));
        continue;
      }
      call.out.note("Partition " + label + (dry ? " would be" : " is") +
                    " tried now; it backs off from: " + error);
    } else if (!all) {
      throw UsageError{"partition " + label + " isn't backing off: there is nothing to retry"};
    }
  }
  return done;
}

const std::vector<Operand> one_partition{
    {"PARTITION", "its label: all, p00, p01, …", true, false, "@partitions"}};

}  // namespace

std::vector<Command> partition_commands() {
  return {
      {.path = "outbox partitions list",
       .summary = "List partitions with owner and backlog",
       .options = {db_option},
       .examples = {{"list partitions and owners", "outbox partitions list"}},
       .run = list_partitions},
      {.path = "outbox partitions resize",
       .summary = "Change the number of partitions for new events",
       .about = "Works online: no message is lost, and each key keeps its order.",
       .operands = {{"COUNT", "1 to 1024"}},
       .options = {db_option, dry_run_option},
       .examples = {{"to spread the load", "outbox partitions resize 16"}},
       .run = resize},
      {.path = "outbox partitions sync",
       .summary = "Create missing partitions; --prune retires drained ones",
       .options = {db_option,
                   {"--prune", "", "retire drained partitions of older generations"},
                   dry_run_option},
       .examples = {{"what it would do", "outbox partitions sync --prune --dry-run"}},
       .run = sync},
      {.path = "outbox partitions adopt",
       .summary = "Resume a stopped partition from the broker's position",
       .about = "Marks this database's own messages there, passes over all others, and continues "
                "after the last one. What the broker has lost isn't sent again: 'outbox republish' "
                "does that.",
       .operands = {{"PARTITION", "its label: all, p00, p01, …", false, false, "@partitions"}},
       .options = {db_option,
                   {"--all", "", "all stopped partitions that this resumes"},
                   {"--broker-sequence", "N",
                    "the broker sequence of the partition's last message"},
                   {"--nats", "URL", "the broker to check that number at, or to preview",
                    "nats.url"},
                   jetstream_option,
                   prefix_option,
                   dry_run_option,
                   yes_option},
       .examples = {{"what would be marked, passed over and missing",
                     "outbox partitions adopt p03 --dry-run --nats nats://broker:4222"},
                    {"after a JetStream stream was re-created",
                     "outbox partitions adopt p03 --broker-sequence 0 --yes"},
                    {"after a restored backup", "outbox partitions adopt --all"}},
       .run = adopt},
      {.path = "outbox partitions retry",
       .summary = "Let a partition that is backing off try now",
       .about = "Its worker tries as soon as it looks, instead of at the next attempt's time.",
       .operands = {{"PARTITION", "its label: all, p00, p01, …", false, false, "@partitions"}},
       .options = {db_option, {"--all", "", "all partitions that are backing off"}, dry_run_option},
       .examples = {{"after raising a limit of its stream", "outbox partitions retry p03"},
                    {"after granting a permission", "outbox partitions retry --all"}},
       .run = retry_partitions},
      {.path = "outbox partitions resume",
       .summary = "Resume a partition that a failing message stopped",
       .operands = one_partition,
       .options = {db_option},
       .examples = {{"after fixing the cause", "outbox partitions resume p03"}},
       .run = resume_partition},
  };
}

}  // namespace stela::tool
