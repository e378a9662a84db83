// inbox status, held, release, list, retry, discard, gaps: the consuming side.
#include "description/inbox.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/inbox_check.hpp"
#include "store_session.hpp"

#include <functional>

namespace stela::tool {
namespace {

nats::InboxQuery letters_asked_for(const Arguments& arguments) {
  return {.after = arguments.integer("--after", {0, largest}).value_or(0),
          .limit = static_cast<int>(arguments.integer("--limit", {1, 1'000'000}).value_or(100))};
}

/// Lists what `read` finds in the inbox, of the consumer that was named or of all.
template <class T, class Read>
int list_of(Invocation& call, const Description<T>& description, Read read) {
  nats::InboxQuery query = letters_asked_for(call.arguments);
  StoreSession session{call, {.only_reads = true}};
  nats::InboxOperations inbox{session.store()};
  query.consumer = consumer_of(call.arguments, inbox);
  print_list(call.out, description, std::invoke(read, inbox, query));
  return done;
}

int list_letters(Invocation& call) {
  return list_of(call, description::dead_letter, &nats::InboxOperations::dead_letters);
}

int gaps(Invocation& call) {
  return list_of(call, description::gap, &nats::InboxOperations::gaps);
}

int held(Invocation& call) {
  return list_of(call, description::held_stream, &nats::InboxOperations::held);
}

int inbox_status(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  print_list(call.out, description::consumer, nats::InboxOperations{session.store()}.status());
  return done;
}

std::int64_t letter_of(const Arguments& arguments) {
  return to_integer(arguments.operands().front(), "a letter's number", {1, largest});
}

int retry_letters(Invocation& call) {
  const std::int64_t letter = letter_of(call.arguments);
  StoreSession session{call};
  nats::InboxOperations{session.store()}.retry(letter);
  call.out.note("Its consumer retries it.");
  return done;
}

int discard_letters(Invocation& call) {
  const std::int64_t letter = letter_of(call.arguments);
  StoreSession session{call};
  if (!call.confirm("Dead letter " + std::to_string(letter) +
                    " will be removed for good. Continue?")) {
    return failed;
  }
  nats::InboxOperations{session.store()}.discard(letter);
  call.out.note("Discarded.");
  return done;
}

int release(Invocation& call) {
  const std::int64_t number =
      to_integer(call.arguments.operands().front(), "a held stream's number", {1, largest});
  const bool skips = call.arguments.has("--skip");
  StoreSession session{call};
  if (skips && !call.confirm("The first message of held stream " + std::to_string(number) +
                             " will become a dead letter. Continue?")) {
    return failed;
  }
  const auto how = skips ? nats::HeldRelease::skip : nats::HeldRelease::retry;
  nats::InboxOperations{session.store()}.release(number, how);
  call.out.note(skips ? "Its consumer skips the message."
                      : "Its consumer retries the message now.");
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
       .run = inbox_status},
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
       .run = list_letters},
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
       .run = retry_letters},
      {.path = "inbox discard",
       .summary = "Delete a dead letter",
       .operands = {letter_operand},
       .options = {db_option, yes_option},
       .examples = {{"delete one", "inbox discard 3 --yes"}},
       .run = discard_letters},
  };
}

}  // namespace stela::tool
