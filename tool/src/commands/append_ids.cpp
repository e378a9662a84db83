// append-ids purge.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>

namespace stela::tool {
namespace {

int purge_append_ids(Invocation& call) {
  const auto text = call.arguments.text("--older-than");
  if (!text) throw Misuse{"which ids? --older-than TIME, a time such as 90d"};
  const auto age = parse_duration(*text);
  if (!age) throw Misuse{not_a_duration("--older-than", *text)};
  const Signals signals{call};
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  const Timestamp before = system_clock().now() - *age;
  ProgressBar bar{call.out, "append ids"};
  const auto run = [&](bool dry_run) {
    const auto purged = StoreOperations{session.store()}.purge_append_ids(
        before, {.dry_run = dry_run,
                 .progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
                 .stop = signals.token()});
    bar.clear();
    return purged;
  };
  const bool dry = call.arguments.has("--dry-run");
  bool removes = false;
  auto purged = run(true);
  if (purged.finished && !dry) {
    if (!call.confirm("Remove " + counted(purged.ids, "append id") +
                      "? Repeating one of these appends will append its events again.")) {
      return failed;
    }
    removes = true;
    purged = run(false);
  }
  if (!purged.finished && !removes) return interrupted;
  print_result(
      call.out, {{"append_ids", purged.ids}, {"dry_run", dry}, {"finished", purged.finished}},
      (dry ? "Would remove " : "Removed ") + counted(purged.ids, "append id") +
          (purged.finished ? "." : " before the interruption; run it again for the rest."));
  return purged.finished ? done : interrupted;
}

}  // namespace

std::vector<Command> append_id_commands() {
  return {
      {.path = "append-ids purge",
       .summary = "Delete old append ids, which make appends repeatable",
       .about = "Append ids are kept for ever otherwise. An append that repeats a deleted id "
                "appends its events again, so delete only ids older than any client's last retry.",
       .options = {db_option,
                   {"--older-than", "TIME", "a time such as 90d; must be given"},
                   dry_run_option,
                   yes_option},
       .examples = {{"ids that no client repeats any more",
                     "append-ids purge --older-than 90d --yes"}},
       .run = purge_append_ids},
  };
}

}  // namespace stela::tool
