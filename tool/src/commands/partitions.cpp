// outbox partitions list, sync, resize, adopt, resume.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "session.hpp"

#include <stela/framework/codec/json_writer.hpp>

namespace stela::tool {
namespace {

int list(Invocation& call) {
  Session session{call, {.only_reads = true}};
  const OutboxStatus seen = session.operations().status();
  if (call.out.is_json()) {
    call.out.json(to_json(seen));
  } else {
    print_partitions(seen, call.out);
  }
  return done;
}

std::string labels_of(std::span<const PartitionId> partitions) {
  std::string text;
  for (const PartitionId partition : partitions) {
    text.append(text.empty() ? "" : " ").append(partition.label());
  }
  return text;
}

int sync(Invocation& call) {
  Session session{call};
  const bool dry = call.arguments.has("--dry-run");
  const Synced synced = session.operations().sync(call.arguments.has("--prune"),
                                                  dry ? Mode::dry_run : Mode::carry_out);
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter{text}
        .add("added", labels_of(synced.added))
        .add("retired", labels_of(synced.retired))
        .add("unsettled", labels_of(synced.unsettled))
        .add("dry_run", dry)
        .close();
    call.out.json(text);
    return done;
  }
  const std::string would = dry ? "would be " : "";
  call.out.line(synced.added.empty() ? "No partition is missing."
                                     : would + "added: " + labels_of(synced.added));
  if (call.arguments.has("--prune")) {
    call.out.line(synced.retired.empty() ? "None is to be retired."
                                         : would + "retired: " + labels_of(synced.retired));
  }
  if (!synced.unsettled.empty()) {
    call.out.line("Not retired: " + labels_of(synced.unsettled) + ". " +
                  loss_in_words(session.operations().status()) + " → " +
                  way_to_settle(call.app.name + ' '));
  }
  return done;
}

int resize(Invocation& call) {
  const auto count = static_cast<int>(
      to_integer(call.arguments.operands().front(), "the number of partitions", {1, 1024}));
  Session session{call};
  const bool dry = call.arguments.has("--dry-run");
  Resized resized{.before = session.operations().status().partition_count, .after = count};
  if (!dry) resized = session.operations().resize(count);
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter object{text};
    object.add("before", resized.before).add("after", resized.after).add("dry_run", dry);
    if (!dry) object.add("generation", resized.generation);
    object.close();
    call.out.json(text);
  } else if (dry) {
    call.out.line("Would go from " + std::to_string(resized.before) + " to " +
                  counted(count, "partition") + ".");
  } else {
    call.out.line("From " + std::to_string(resized.before) + " to " +
                  counted(resized.after, "partition") +
                  ": what is appended from now on is published once what waits is.");
  }
  return done;
}

std::string_view warning_of(const PartitionStatus& stopped) {
  if (stopped.stopped == "foreign_writer") {
    return "The other writer must have been stopped, or both stop again. ";
  }
  if (stopped.stopped == "store_went_back") {
    return "If this is a copy of a database that still runs, it publishes into that one's stream: "
           "give it a stream of its own instead. ";
  }
  return "";
}

int adopt(Invocation& call) {
  const PartitionId partition = to_partition(call.arguments.operands().front());
  std::optional<std::uint64_t> at;
  if (const auto sequence = call.arguments.integer("--broker-sequence", {0, largest})) {
    at = static_cast<std::uint64_t>(*sequence);
  }
  Session session{call};
  std::string question =
      "Partition " + partition.label() + " will go on from where the broker stands. ";
  for (const PartitionStatus& each : session.operations().status().partitions) {
    if (each.id == partition) question += warning_of(each);
  }
  if (!call.confirm(question + "Go on?")) {
    return failed;
  }
  session.operations().adopt(partition, at);
  call.out.note("Partition " + partition.label() + " goes on.");
  const OutboxStatus status = session.operations().status();
  if (status.losses > 0) {
    call.out.note(loss_in_words(status) + " → " + way_to_settle(call.app.name + ' '));
  }
  return done;
}

int resume(Invocation& call) {
  const PartitionId partition = to_partition(call.arguments.operands().front());
  Session session{call};
  session.operations().resume(partition);
  call.out.note("Partition " + partition.label() + " goes on.");
  return done;
}

const std::vector<Operand> one_partition{{"PARTITION", "its label: all, p00, p01, …"}};

}  // namespace

std::vector<Command> partition_commands() {
  return {
      {.path = "outbox partitions list",
       .summary = "lists partitions with their owners and what waits in them",
       .options = {db_option},
       .examples = {{"who has which", "outbox partitions list"}},
       .run = list},
      {.path = "outbox partitions resize",
       .summary = "spreads what is appended from now on over another number of partitions",
       .about = "Online: nothing is stranded, and the order of each key is kept.",
       .operands = {{"COUNT", "1 to 1024"}},
       .options = {db_option, dry_run_option},
       .examples = {{"for more than one stream's worth", "outbox partitions resize 16"}},
       .run = resize},
      {.path = "outbox partitions sync",
       .summary = "adds partitions that are missing; --prune retires drained ones",
       .options = {db_option,
                   {"--prune", "", "retire drained ones of older generations without open losses"},
                   dry_run_option},
       .examples = {{"what it would do", "outbox partitions sync --prune --dry-run"}},
       .run = sync},
      {.path = "outbox partitions adopt",
       .summary = "lets a stopped partition go on from where the broker stands",
       .operands = one_partition,
       .options = {db_option,
                   {"--broker-sequence", "N", "the sequence of the partition's last message there"},
                   yes_option},
       .examples = {{"after a JetStream stream was made anew",
                     "outbox partitions adopt p03 --broker-sequence 0 --yes"}},
       .run = adopt},
      {.path = "outbox partitions resume",
       .summary = "lets a partition go on that a poisoned message halted",
       .operands = one_partition,
       .options = {db_option},
       .examples = {{"once the cause is gone", "outbox partitions resume p03"}},
       .run = resume},
  };
}

}  // namespace stela::tool
