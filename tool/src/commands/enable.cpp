#include "commands/enable.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "session.hpp"

namespace stela::tool {
namespace {

Fence to_fence(std::string_view text) {
  for (const Fence fence : {Fence::stream, Fence::subject, Fence::none}) {
    if (to_string(fence) == text) return fence;
  }
  throw Misuse{"a fence is stream, subject or none"};
}

int enable(Invocation& call) {
  if (call.arguments.has("--from-now") && call.arguments.has("--backfill")) {
    throw Misuse{"--from-now and --backfill contradict each other"};
  }
  OutboxOptions options;
  const Settings& settings = call.settings();
  if (settings.is_set("outbox.partition_count")) {
    options.partition_count = static_cast<int>(settings.integer("outbox.partition_count"));
  }
  if (settings.is_set("outbox.fence")) options.fence = to_fence(settings.text("outbox.fence"));
  if (settings.is_set("outbox.leasing")) options.leasing = settings.boolean("outbox.leasing");
  if (call.arguments.has("--from-now")) options.enable = Enable::from_now;
  if (call.arguments.has("--backfill")) options.enable = Enable::backfill;
  if (const auto name = call.arguments.text("--partitioner")) {
    options.partitioner = find_partitioner(call.app, *name);
    if (options.partitioner == nullptr) {
      throw Misuse{"there is no partitioner '" + in_one_line(*name) + "' here"};
    }
  }
  Session session{call};
  const Outbox outbox{session.store(), options};
  if (call.out.is_json()) {
    call.out.json(to_json(session.operations().status()));
  } else {
    std::string text{"Outbox ready: fence "};
    text.append(to_string(outbox.fence())).append(", ");
    call.out.line(text + counted(outbox.partition_count(), "partition") + ".");
  }
  return done;
}

}  // namespace

Command enable_command() {
  return {.path = "outbox enable",
          .summary = "Create the outbox; publishable events are enqueued from then on",
          .options = {db_option,
                      {"--partitions", "N", "1 (default) to 1024", "outbox.partition_count"},
                      {"--fence", "MODE", "stream (default), subject or none", "outbox.fence"},
                      {"--no-leasing", "",
                       "no leases: workers claim single messages; needs --fence none",
                       "outbox.leasing"},
                      {"--partitioner", "NAME", "partition key: what events keep their order by"},
                      {"--from-now", "", "don't enqueue existing publishable events"},
                      {"--backfill", "", "enqueue existing publishable events too, oldest first"}},
          .examples = {{"for a new database", "outbox enable --db shop.db"},
                       {"publish existing events too", "outbox enable --backfill"}},
          .run = enable};
}

}  // namespace stela::tool
