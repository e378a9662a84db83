// inbox status, list, retry, discard, gaps, pause, resume: the consuming side.
#include "description/inbox.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/inbox_check.hpp"
#include "store_session.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace stela::tool {
namespace {

/// A limit, because messages are read with their payloads.
constexpr std::int64_t messages_at_once = 100;

/// Lists the `chosen` items that `read` finds in the inbox, of the named consumer or of all.
template <class T, class Read, class Chosen>
int list_of(Invocation& call, const Description<T>& description, Read read, Chosen chosen) {
  Page page{call.arguments};
  nats::InboxQuery query{.direction = page.direction(),
                         .after = call.arguments.integer("--after", {0, largest}).value_or(0)};
  StoreSession session{call, {.only_reads = true}};
  nats::InboxOperations inbox{session.store()};
  query.consumer = consumer_of(call.arguments, inbox);
  Listing listing{call.out, description};
  const auto add = [&](const T& one) {
    query.after = one.number;
    if (!page.look(one.number)) return false;
    if (!chosen(one)) return true;
    if (!page.take(one.number)) return false;
    listing.add(one);
    return true;
  };
  for (bool goes_on = true; goes_on;) {
    query.limit = static_cast<int>(std::min(page.rows_read(), messages_at_once));
    const std::vector<T> found = std::invoke(read, inbox, query);
    goes_on = std::all_of(found.begin(), found.end(), add) && std::ssize(found) == query.limit;
  }
  listing.print();
  page.tell(call.out, "rows", 0);
  return done;
}

int list_parked(Invocation& call) {
  const TimeRange times{call.arguments};
  const std::vector<std::string> types = call.arguments.all("--type");
  return list_of(call, description::parked_message, &nats::InboxOperations::parked,
                 [&](const nats::ParkedMessage& one) {
                   const bool is_meant =
                       types.empty() || std::find(types.begin(), types.end(),
                                                  description::type_of(one)) != types.end();
                   return is_meant && times.has(one.parked_at);
                 });
}

int gaps(Invocation& call) {
  const TimeRange times{call.arguments};
  return list_of(call, description::gap, &nats::InboxOperations::gaps,
                 [&](const nats::Gap& one) { return times.has(one.seen_at); });
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
  nats::InboxOperations{session.store(), call.who()}.retry(parked);
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
  nats::InboxOperations{session.store(), call.who()}.discard(parked);
  call.out.note("Discarded. Its consumer handles those that waited for it, if any did.");
  return done;
}

int pause(Invocation& call) {
  const std::string consumer{call.arguments.operands().front()};
  StoreSession session{call};
  nats::InboxOperations{session.store(), call.who()}.pause(consumer);
  call.out.note(
      "Its processes finish what they have fetched; then it reads nothing until 'inbox "
      "resume " +
      consumer + "'.");
  return done;
}

int resume(Invocation& call) {
  const std::string consumer{call.arguments.operands().front()};
  StoreSession session{call};
  nats::InboxOperations{session.store(), call.who()}.resume(consumer);
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
  nats::InboxOperations{session.store(), call.who()}.forget(consumer, stream);
  call.out.note("Forgotten. Its readers of other streams don't wait for this one.");
  return done;
}

/// A mistyped name would create a consumer that nobody runs, or a stream that nobody reads.
void require_reader(Store& store, const std::string& name, const std::string& stream, bool is_new) {
  std::string known;
  for (const nats::ConsumerStatus& one : nats::InboxOperations{store}.status()) {
    for (const nats::ReaderStatus& reader : one.readers) {
      if (one.consumer == name && reader.broker_stream == stream) {
        if (!is_new) return;
        throw Exit{usage, "consumer '" + in_one_line(name) + "' reads the stream '" +
                              in_one_line(stream) + "' already; leave --new out"};
      }
      known += (known.empty() ? "'" : ", '") + in_one_line(one.consumer) + "' of '" +
               in_one_line(reader.broker_stream) + "'";
    }
  }
  if (is_new) return;
  throw Exit{not_found, "there is no consumer '" + in_one_line(name) + "' of the stream '" +
                            in_one_line(stream) + "'; there " +
                            (known.empty() ? "is none" : "are " + known) +
                            ". If it is still to be started in this database, pass --new"};
}

int move(Invocation& call) {
  const std::string consumer{call.arguments.operands().at(0)};
  const std::string stream{call.arguments.operands().at(1)};
  const std::int64_t position =
      to_integer(call.arguments.operands().at(2), "a position", {0, largest});
  StoreSession session{call};
  require_reader(session.store(), consumer, stream, call.arguments.has("--new"));
  if (!call.confirm("Consumer '" + consumer + "' will read the stream '" + stream +
                    "' on behind message " + std::to_string(position) + ". Continue?")) {
    return failed;
  }
  nats::InboxOperations{session.store(), call.who()}.move(consumer, stream,
                                                          static_cast<std::uint64_t>(position));
  call.out.note("'" + consumer + "' reads '" + stream + "' on behind message " +
                std::to_string(position) + ", or from the stream's end if that comes before.");
  return done;
}

const Operand stream_operand{"STREAM", "the JetStream stream, from 'inbox status'"};
const Operand parked_operand{"MESSAGE", "its number, from 'inbox list'"};
const Operand consumer_operand{"CONSUMER", "its name, from 'inbox status'"};
constexpr Option consumer_option{"--consumer", "NAME", "only this consumer"};
constexpr Option after_option{"--after", "N", "continue after this number"};
constexpr Option parked_since_option{"--since", "TIME",
                                     "parked since: 2026-11-23, 2026-11-23T10:00+02:00, or 15m for "
                                     "15 minutes ago"};
constexpr Option parked_until_option{"--until", "TIME", "parked until, given as for --since"};
constexpr Option seen_since_option{"--since", "TIME",
                                   "noticed since, such as 15m for 15 minutes ago"};
constexpr Option seen_until_option{"--until", "TIME", "noticed until, given as for --since"};

Command inbox_list_command() {
  return {
      .path = "inbox list",
      .summary = "List parked messages",
      .about =
          "A message that its handler couldn't handle, or that can't be read, is parked whole. "
          "Later messages of its stream are parked behind it.",
      .options = {db_option, consumer_option, type_option, parked_since_option, parked_until_option,
                  newest_first_option, limit_option, after_option, look_further_option},
      .examples = {{"of one consumer", "inbox list --consumer billing"},
                   {"the last ones", "inbox list --newest-first --limit 10"}},
      .run = list_parked};
}

Command inbox_gaps_command() {
  return {.path = "inbox gaps",
          .summary = "List messages that consumers missed",
          .options = {db_option, consumer_option, seen_since_option, seen_until_option,
                      newest_first_option, limit_option, after_option, look_further_option},
          .examples = {{"all of them", "inbox gaps --json"}},
          .run = gaps};
}

}  // namespace

std::vector<Command> inbox_commands() {
  return {
      {.path = "inbox status",
       .summary = "Show where each consumer is, and what it parked or missed",
       .options = {db_option},
       .examples = {{"all consumers", "inbox status"}},
       .run = inbox_status},
      inbox_check_command(),
      inbox_list_command(),
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
      inbox_gaps_command(),
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
           "consumers were: move them before they are started, with --new.",
       .operands = {consumer_operand,
                    stream_operand,
                    {"POSITION", "a sequence of the JetStream stream, from 'inbox status'"}},
       .options = {db_option,
                   {"--new", "", "the consumer was never started in this database"},
                   yes_option},
       .examples = {{"in a moved database", "inbox move billing SHOP 48213 --new --yes"}},
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
