// projections replay and rebuild.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/projections.hpp"
#include "key_session.hpp"
#include "store_session.hpp"

#include <stela/projections/replayer.hpp>

namespace stela::tool {
namespace {

ReplayFilter filter_of(const Arguments& arguments) {
  const EventSelection selection{arguments};
  ReplayFilter filter{.categories = selection.query.categories,
                      .event_types = selection.query.event_types,
                      .from = selection.query.from,
                      .to = selection.query.to,
                      .since = selection.query.since,
                      .until = selection.query.until};
  if (selection.stream) filter.streams.push_back(selection.stream->name());
  return filter;
}

int dry_run(Invocation& call, Replayer& replayer, const ReplayFilter& filter) {
  print_list(call.out, description::events_of_type, replayer.dry_run(filter));
  return done;
}

int report_replay(Invocation& call, const ReplayResult& result) {
  for (const ReplayResult::Model& model : result.models) {
    print_result(call.out,
                 {{"projector", model.projector},
                  {"build", model.build},
                  {"position", model.position},
                  {"complete", result.is_complete},
                  {"resumed", result.was_resumed}},
                 model.projector + ": tables '" + model.projector + "@" +
                     std::to_string(model.build) + ".…' hold everything up to event " +
                     std::to_string(model.position.value()) + ".");
  }
  if (!result.is_complete) call.out.note("Interrupted; the same command continues from there.");
  return result.is_complete ? done : interrupted;
}

int replay_with(Invocation& call, const ReplayFilter& filter) {
  const Signals signals{call};
  KeySession keys{call, false};
  StoreSession session{call, {.keys = keys.keyring()}};
  keys.require_for(session.store());
  Replayer replayer{session.projections()};
  if (call.arguments.has("--dry-run")) return dry_run(call, replayer, filter);
  const bool living = call.arguments.has("--into-living");
  if (living && !call.confirm("The live tables will be changed. Continue?")) return failed;
  ProgressBar bar{call.out, "events"};
  const ReplayResult result = replayer.run(
      {.projectors = call.arguments.all("--projector"),
       .filter = filter,
       .into = living ? ReplayInto::living : ReplayInto::scratch,
       .restart = call.arguments.has("--restart"),
       .decode_ahead = call.arguments.has("--decode-ahead"),
       .on_progress = [&](const ReplayProgress& p) { bar.show("replaying", p.done, p.total); }},
      signals.token());
  bar.clear();
  return report_replay(call, result);
}

int replay(Invocation& call) {
  const ReplayFilter filter = filter_of(call.arguments);
  if (filter.is_empty() && !call.arguments.has("--dry-run")) {
    throw Misuse{
        "which events? Pass --stream, --category, --type, --from, --to, --since or "
        "--until; 'projections rebuild' takes all of them"};
  }
  return replay_with(call, filter);
}

int rebuild(Invocation& call) {
  return replay_with(call, {});
}

constexpr Option projector_option{
    "--projector", "NAME", "only this projector (default: all)", "", true, "@projectors"};
constexpr Option restart_option{"--restart", "",
                                "start from the beginning, not where an earlier run stopped"};
constexpr Option ahead_option{"--decode-ahead", "", "read and decode on a separate thread"};

}  // namespace

Command replay_command() {
  return {.path = "projections replay",
          .summary = "Replay part of the history into separate tables",
          .about =
              "Publishes nothing and records nothing. Available in tools built with an "
              "application's types.",
          .options = {db_option,
                      projector_option,
                      from_option,
                      to_option,
                      since_option,
                      until_option,
                      stream_option,
                      category_option,
                      type_option,
                      {"--into-living", "", "apply to the live tables of idempotent projectors"},
                      restart_option,
                      ahead_option,
                      keys_option,
                      master_option,
                      erasures_option,
                      dry_run_option,
                      yes_option},
          .examples = {{"count the events", "projections replay --category order --dry-run"}},
          .run = replay};
}

Command rebuild_command() {
  return {.path = "projections rebuild",
          .summary = "Rebuild projectors into new tables, then swap them in",
          .about =
              "Readers never see a half-built model; interrupted rebuilds resume. Available in "
              "tools built with an application's types.",
          .options = {db_option, projector_option, restart_option, ahead_option, keys_option,
                      master_option, erasures_option, dry_run_option},
          .examples = {{"one projector", "projections rebuild --projector order_summary"}},
          .run = rebuild};
}

}  // namespace stela::tool
