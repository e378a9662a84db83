// inbox status, held, release, list, retry, discard, gaps: the consuming side.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/inbox_check.hpp"
#include "event_text.hpp"
#include "session.hpp"

#include <stela/framework/codec/json_writer.hpp>
#include <stela/nats/inbox.hpp>

namespace stela::tool {
namespace {

nats::InboxQuery query_of(const Arguments& arguments) {
  return {.after = arguments.integer("--after", {0, largest}).value_or(0),
          .limit = static_cast<int>(arguments.integer("--limit", {1, 1'000'000}).value_or(100))};
}

int list(Invocation& call) {
  nats::InboxQuery query = query_of(call.arguments);
  Session session{call, {.only_reads = true}};
  nats::Inbox inbox{session.store()};
  query.consumer = consumer_of(call.arguments, inbox);
  Table table{{{"LETTER", Table::Align::right},
               {"CONSUMER"},
               {"SUBJECT"},
               {"DEAD AT"},
               {"ATTEMPTS", Table::Align::right},
               {"STATE"},
               {"ERROR"}}};
  for (const nats::DeadLetter& letter : inbox.dead_letters(query)) {
    if (!call.out.is_json()) {
      table.add({std::to_string(letter.number), letter.consumer, letter.subject,
                 short_time(letter.dead_at), std::to_string(letter.attempts),
                 letter.is_to_retry ? "to be retried" : "dead", letter.error});
      continue;
    }
    std::string text;
    json::ObjectWriter{text}
        .add("letter", letter.number)
        .add("consumer", letter.consumer)
        .add("broker_stream", letter.broker_stream)
        .add("broker_sequence", letter.broker_sequence)
        .add("subject", in_one_line(letter.subject))
        .add("dead_at", to_string(letter.dead_at))
        .add("attempts", letter.attempts)
        .add("error", in_one_line(letter.error))
        .add("is_to_retry", letter.is_to_retry)
        .close();
    call.out.json(text);
  }
  if (!call.out.is_json()) table.print(call.out);
  return done;
}

int gaps(Invocation& call) {
  nats::InboxQuery query = query_of(call.arguments);
  Session session{call, {.only_reads = true}};
  nats::Inbox inbox{session.store()};
  query.consumer = consumer_of(call.arguments, inbox);
  Table table{{{"GAP", Table::Align::right},
               {"CONSUMER"},
               {"STREAM"},
               {"BEHIND VERSION", Table::Align::right},
               {"MISSING UP TO", Table::Align::right},
               {"SEEN AT"}}};
  for (const nats::Gap& gap : inbox.gaps(query)) {
    if (!call.out.is_json()) {
      table.add({std::to_string(gap.number), gap.consumer, gap.stream,
                 std::to_string(gap.after.value()), std::to_string(gap.missing.value()),
                 short_time(gap.seen_at)});
      continue;
    }
    std::string text;
    json::ObjectWriter{text}
        .add("gap", gap.number)
        .add("consumer", gap.consumer)
        .add("source", gap.source)
        .add("stream", in_one_line(gap.stream))
        .add("after", gap.after.value())
        .add("missing", gap.missing.value())
        .add("seen_at", to_string(gap.seen_at))
        .close();
    call.out.json(text);
  }
  if (!call.out.is_json()) table.print(call.out);
  return done;
}

std::int64_t letter_of(const Arguments& arguments) {
  return to_integer(arguments.operands().front(), "a letter's number", {1, largest});
}

[[noreturn]] void refuse(std::int64_t letter) {
  throw Exit{not_found, "there is no dead letter " + std::to_string(letter)};
}

int retry(Invocation& call) {
  const std::int64_t letter = letter_of(call.arguments);
  Session session{call};
  if (!nats::Inbox{session.store()}.retry(letter)) refuse(letter);
  call.out.note("Its consumer retries it.");
  return done;
}

int discard(Invocation& call) {
  const std::int64_t letter = letter_of(call.arguments);
  Session session{call};
  if (!call.confirm("Dead letter " + std::to_string(letter) +
                    " will be removed for good. Continue?")) {
    return failed;
  }
  if (!nats::Inbox{session.store()}.discard(letter)) refuse(letter);
  call.out.note("Discarded.");
  return done;
}

/// What a held stream waits for.
std::string_view reason_of(const nats::HeldStream& held) {
  if (held.is_released) return "released";
  return held.attempts > 0 ? "failing" : "waiting for an earlier message";
}

int held(Invocation& call) {
  nats::InboxQuery query = query_of(call.arguments);
  Session session{call, {.only_reads = true}};
  nats::Inbox inbox{session.store()};
  query.consumer = consumer_of(call.arguments, inbox);
  Table table{{{"HELD", Table::Align::right},
               {"CONSUMER"},
               {"STREAM"},
               {"VERSION", Table::Align::right},
               {"SINCE"},
               {"STATE"},
               {"ATTEMPTS", Table::Align::right},
               {"NEXT"},
               {"WAITING", Table::Align::right},
               {"ERROR"}}};
  for (const nats::HeldStream& one : inbox.held(query)) {
    if (!call.out.is_json()) {
      table.add({std::to_string(one.number), one.consumer, one.stream,
                 std::to_string(one.version.value()), short_time(one.held_at),
                 std::string{reason_of(one)}, std::to_string(one.attempts), short_time(one.due_at),
                 std::to_string(one.behind), one.error});
      continue;
    }
    std::string text;
    json::ObjectWriter{text}
        .add("held", one.number)
        .add("consumer", one.consumer)
        .add("source", one.source)
        .add("stream", in_one_line(one.stream))
        .add("version", one.version.value())
        .add("broker_stream", one.broker_stream)
        .add("broker_sequence", one.broker_sequence)
        .add("held_at", to_string(one.held_at))
        .add("due_at", to_string(one.due_at))
        .add("state", reason_of(one))
        .add("attempts", one.attempts)
        .add("waiting", one.behind)
        .add("error", in_one_line(one.error))
        .close();
    call.out.json(text);
  }
  if (!call.out.is_json()) table.print(call.out);
  return done;
}

int release(Invocation& call) {
  const std::int64_t number =
      to_integer(call.arguments.operands().front(), "a held stream's number", {1, largest});
  const bool skips = call.arguments.has("--skip");
  Session session{call};
  if (skips && !call.confirm("The first message of held stream " + std::to_string(number) +
                             " will become a dead letter. Continue?")) {
    return failed;
  }
  const auto how = skips ? nats::Release::skip : nats::Release::retry;
  if (!nats::Inbox{session.store()}.release(number, how)) {
    throw Exit{not_found, "there is no held stream " + std::to_string(number)};
  }
  call.out.note(skips ? "Its consumer skips the message."
                      : "Its consumer retries the message now.");
  return done;
}

int status(Invocation& call) {
  Session session{call, {.only_reads = true}};
  nats::Inbox inbox{session.store()};
  Table table{{{"CONSUMER"},
               {"HELD STREAMS", Table::Align::right},
               {"HELD MESSAGES", Table::Align::right},
               {"HELD SINCE"},
               {"DEAD LETTERS", Table::Align::right},
               {"GAPS", Table::Align::right}}};
  for (const nats::ConsumerStatus& one : inbox.status()) {
    const std::string since = one.held_since ? to_string(*one.held_since) : "";
    if (!call.out.is_json()) {
      table.add({one.consumer, std::to_string(one.held_streams), std::to_string(one.held_messages),
                 one.held_since ? short_time(*one.held_since) : "",
                 std::to_string(one.dead_letters), std::to_string(one.gaps)});
      continue;
    }
    std::string text;
    json::ObjectWriter{text}
        .add("consumer", one.consumer)
        .add("held_streams", one.held_streams)
        .add("held_messages", one.held_messages)
        .add("held_since", since)
        .add("dead_letters", one.dead_letters)
        .add("gaps", one.gaps)
        .close();
    call.out.json(text);
  }
  if (!call.out.is_json()) table.print(call.out);
  return done;
}

const Operand held_operand{"HELD", "its number, from 'inbox held'"};
const Operand letter_operand{"LETTER", "its number, from 'inbox list'"};
constexpr Option consumer_option{"--consumer", "NAME", "only this consumer"};
constexpr Option after_option{"--after", "N", "only numbers after this one"};

}  // namespace

std::vector<Command> inbox_commands() {
  return {
      {.path = "inbox status",
       .summary = "Show backlog, dead letters and gaps by consumer",
       .options = {db_option},
       .examples = {{"all consumers", "inbox status"}},
       .run = status},
      inbox_check_command(),
      {.path = "inbox held",
       .summary = "List streams that a failing or missing message holds",
       .options = {db_option, consumer_option, after_option, limit_option},
       .examples = {{"of one consumer", "inbox held --consumer billing"}},
       .run = held},
      {.path = "inbox release",
       .summary = "Retry a held stream's first message now, or skip it",
       .about = "Without --skip, a failed message is retried at once, and a message behind a gap "
                "stops waiting for it. With --skip, the message becomes a dead letter, and later "
                "messages of its stream are handled.",
       .operands = {held_operand},
       .options = {db_option, {"--skip", "", "move the message to the dead letters"}, yes_option},
       .examples = {{"after fixing the handler", "inbox release 7"},
                    {"continue without the message", "inbox release 7 --skip --yes"}},
       .run = release},
      {.path = "inbox list",
       .summary = "List dead letters",
       .options = {db_option, consumer_option, after_option, limit_option},
       .examples = {{"of one consumer", "inbox list --consumer billing"}},
       .run = list},
      {.path = "inbox gaps",
       .summary = "List messages that consumers missed",
       .options = {db_option, consumer_option, after_option, limit_option},
       .examples = {{"all of them", "inbox gaps --json"}},
       .run = gaps},
      {.path = "inbox retry",
       .summary = "Retry a dead letter",
       .operands = {letter_operand},
       .options = {db_option},
       .examples = {{"after fixing the handler", "inbox retry 3"}},
       .run = retry},
      {.path = "inbox discard",
       .summary = "Delete a dead letter",
       .operands = {letter_operand},
       .options = {db_option, yes_option},
       .examples = {{"delete one", "inbox discard 3 --yes"}},
       .run = discard},
  };
}

}  // namespace stela::tool
