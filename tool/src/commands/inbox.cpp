// inbox status, list, retry, discard, gaps, pause, resume: the consuming side.
#include "description/inbox.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/inbox_check.hpp"
#include "store_session.hpp"

#include <functional>

namespace stela::tool {
namespace {

nats::InboxQuery page_asked_for(const Arguments& arguments) {
  return {.after = arguments.integer("--after", {0, largest}).value_or(0),
          .limit = static_cast<int>(arguments.integer("--limit", {1, 1'000'000}).value_or(100))};
}

/// Lists what `read` finds in the inbox, of the consumer that was named or of all.
template <class T, class Read>
int list_of(Invocation& call, const Description<T>& description, Read read) {
  nats::InboxQuery query = page_asked_for(call.arguments);
  StoreSession session{call, {.only_reads = true}};
  nats::InboxOperations inbox{session.store()};
  query.consumer = consumer_of(call.arguments, inbox);
  print_list(call.out, description, std::invoke(read, inbox, query));
  return done;
}

int list_parked(Invocation& call) {
  return list_of(call, description::parked_message, &nats::InboxOperations::parked);
}

int gaps(Invocation& call) {
  return list_of(call, description::gap, &nats::InboxOperations::gaps);
}

int inbox_status(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  std::vector<description::Reader> readers;
  for (const nats::ConsumerStatus& one : nats::InboxOperations{session.store()}.status()) {
    for (const nats::ReaderStatus& reader : one.readers) {
      readers.push_back({reader, one.parked_messages, one.parked_streams, one.parked_bytes,
                         one.parked_since, one.gaps});
    }
  }
  print_list(call.out, description::reader, readers);
  return done;
}

std::int64_t parked_message_of(const Arguments& arguments) {
  return to_integer(arguments.operands().front(), "a parked message's number", {1, largest});
}

int retry_parked(Invocation& call) {
  const std::int64_t parked = parked_message_of(call.arguments);
  StoreSession session{call};
  nats::InboxOperations{session.store()}.retry(parked);
  call.out.note("Its consumer retries it, and then those that wait behind it.");
  return done;
}

int discard_parked(Invocation& call) {
  const std::int64_t parked = parked_message_of(call.arguments);
  StoreSession session{call};
  if (!call.confirm("Parked message " + std::to_string(parked) +
                    " will be removed for good. Continue?")) {
    return failed;
  }
  nats::InboxOperations{session.store()}.discard(parked);
  call.out.note("Discarded. Its consumer handles those that waited for it, if any did.");
  return done;
}

int pause(Invocation& call) {
  const std::string consumer{call.arguments.operands().front()};
  StoreSession session{call};
  nats::InboxOperations{session.store()}.pause(consumer);
  call.out.note(
      "Its processes finish what they have fetched; then it reads nothing until 'inbox "
      "resume " +
      consumer + "'.");
  return done;
}

int resume(Invocation& call) {
  const std::string consumer{call.arguments.operands().front()};
  StoreSession session{call};
  nats::InboxOperations{session.store()}.resume(consumer);
  call.out.note("It reads on.");
  return done;
}

int forget(Invocation& call) {
  const std::string consumer{call.arguments.operands().at(0)};
  const std::string stream{call.arguments.operands().at(1)};
  StoreSession session{call};
  if (!call.confirm("Consumer '" + consumer + "' will forget where it is in the stream '" + stream +
                    "'. Continue?")) {
    return failed;
  }
  nats::InboxOperations{session.store()}.forget(consumer, stream);
  call.out.note("Forgotten. Its readers of other streams don't wait for this one.");
  return done;
}

int move(Invocation& call) {
  const std::string consumer{call.arguments.operands().at(0)};
  const std::string stream{call.arguments.operands().at(1)};
  const std::int64_t position =
      to_integer(call.arguments.operands().at(2), "a position", {0, largest});
  StoreSession session{call};
  if (!call.confirm("Consumer '" + consumer + "' will read the stream '" + stream +
                    "' on behind message " + std::to_string(position) + ". Continue?")) {
    return failed;
  }
  nats::InboxOperations{session.store()}.move(consumer, stream,
                                              static_cast<std::uint64_t>(position));
  call.out.note("It reads on behind message " + std::to_string(position) +
                ", or from the stream's end if that comes before.");
  return done;
}

const Operand stream_operand{"STREAM", "the JetStream stream, from 'inbox status'"};
const Operand parked_operand{"MESSAGE", "its number, from 'inbox list'"};
const Operand consumer_operand{"CONSUMER", "its name, from 'inbox status'"};
constexpr Option consumer_option{"--consumer", "NAME", "only this consumer"};
constexpr Option after_option{"--after", "N", "only numbers after this one"};

}  // namespace

std::vector<Command> inbox_commands() {
  return {
      {.path = "inbox status",
       .summary = "Show where each consumer is, and what it parked or missed",
       .options = {db_option},
       .examples = {{"all consumers", "inbox status"}},
       .run = inbox_status},
      inbox_check_command(),
      {.path = "inbox list",
       .summary = "List parked messages",
       .about =
           "A message that its handler couldn't handle, or that can't be read, is parked whole. "
           "Later messages of its stream are parked behind it.",
       .options = {db_option, consumer_option, after_option, limit_option},
       .examples = {{"of one consumer", "inbox list --consumer billing"}},
       .run = list_parked},
      {.path = "inbox retry",
       .summary = "Retry a parked message, and those behind it",
       .operands = {parked_operand},
       .options = {db_option},
       .examples = {{"after fixing the handler", "inbox retry 3"}},
       .run = retry_parked},
      {.path = "inbox discard",
       .summary = "Delete a parked message, and handle those behind it",
       .operands = {parked_operand},
       .options = {db_option, yes_option},
       .examples = {{"delete one", "inbox discard 3 --yes"}},
       .run = discard_parked},
      {.path = "inbox gaps",
       .summary = "List messages that consumers missed",
       .options = {db_option, consumer_option, after_option, limit_option},
       .examples = {{"all of them", "inbox gaps --json"}},
       .run = gaps},
      {.path = "inbox pause",
       .summary = "Let a consumer read nothing, in any process",
       .operands = {consumer_operand},
       .options = {db_option},
       .examples = {{"while its database is being moved", "inbox pause billing"}},
       .run = pause},
      {.path = "inbox resume",
       .summary = "Let a paused consumer read on",
       .operands = {consumer_operand},
       .options = {db_option},
       .examples = {{"afterwards", "inbox resume billing"}},
       .run = resume},
      {.path = "inbox move",
       .summary = "Set the position behind which a consumer reads a stream",
       .about =
           "Messages between are passed over, or come once more; those whose event it knows have "
           "no effect then. A database that was moved or made anew doesn't know where its "
           "consumers were: move them before they are started.",
       .operands = {consumer_operand,
                    stream_operand,
                    {"POSITION", "a sequence of the JetStream stream, from 'inbox status'"}},
       .options = {db_option, yes_option},
       .examples = {{"in a moved database", "inbox move billing SHOP 48213 --yes"}},
       .run = move},
      {.path = "inbox forget",
       .summary = "Forget where a consumer is in a stream that it reads no more",
       .about =
           "After a resize, a consumer waits until the streams that it has read before are read "
           "to their ends. It needn't wait for one that is forgotten.",
       .operands = {consumer_operand, stream_operand},
       .options = {db_option, yes_option},
       .examples = {{"an old partition", "inbox forget billing SHOP_p07 --yes"}},
       .run = forget},
  };
}

}  // namespace stela::tool
