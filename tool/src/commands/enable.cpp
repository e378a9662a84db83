// outbox enable.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/status.hpp"
#include "store_session.hpp"

#include <stela/outbox/detail/settings.hpp>

namespace stela::tool {
namespace {

int enable(Invocation& call) {
  if (call.arguments.has("--from-now") && call.arguments.has("--backfill")) {
    throw Misuse{"--from-now and --backfill contradict each other"};
  }
  OutboxOptions options;
  call.settings().apply("outbox", outbox_settings(), options);
  if (call.arguments.has("--from-now")) options.enable = Enable::from_now;
  if (call.arguments.has("--backfill")) options.enable = Enable::backfill;
  if (const auto name = call.arguments.text("--partitioner")) {
    options.partitioner = find_partitioner(call.app, *name);
    if (options.partitioner == nullptr) {
      throw Misuse{"there is no partitioner '" + in_one_line(*name) + "' here"};
    }
  }
  StoreSession session{call};
  const Outbox outbox{session.store(), options};
  if (call.out.is_json()) {
    print_status(session, session.operations().status(), call.out);
  } else {
    std::string text{"Outbox ready: fence "};
    text.append(to_string(outbox.fence())).append(", ");
    call.out.line(text + counted(outbox.partition_count(), "partition") + ".");
  }
  return done;
}

}  // namespace

Command enable_command() {
  return {
      .path = "outbox enable",
      .summary = "Create the outbox; publishable events are enqueued from then on",
      .options = {db_option,
                  {"--partitions", "N", "1 (default) to 1024", "outbox.partition_count"},
                  {"--fence", "MODE", "stream (default), subject or none", "outbox.fence"},
                  {"--no-leasing", "",
                   "for one worker at a time: it has all partitions, and a second one is refused",
                   "outbox.leasing"},
                  {"--partitioner", "NAME", "partition key: what events keep their order by"},
                  {"--from-now", "", "don't enqueue existing publishable events"},
                  {"--backfill", "", "enqueue existing publishable events too, oldest first"}},
      .examples = {{"for a new database", "outbox enable --db shop.db"},
                   {"publish existing events too", "outbox enable --backfill"}},
      .run = enable};
}

}  // namespace stela::tool
