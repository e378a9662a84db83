// streams list, show, state; snapshots list, drop.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/eventstore.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>

#include <optional>

namespace stela::tool {
namespace {

constexpr std::int64_t default_streams = 100;

StreamListing listing_of(const Arguments& arguments) {
  return {.category = arguments.text("--category").value_or(""),
          .after = arguments.text("--after").value_or(""),
          .limit = arguments.integer("--limit", {1, largest}).value_or(default_streams)};
}

int list_streams(Invocation& call) {
  const StreamListing which = listing_of(call.arguments);
  StoreSession session{call, {.only_reads = true}};
  const auto streams = StoreOperations{session.store()}.list_streams(which);
  print_list(call.out, description::stream, streams);
  if (static_cast<std::int64_t>(streams.size()) == which.limit) {
    call.out.note("More results: use --after " + in_one_line(streams.back().stream.name()));
  }
  return done;
}

int show_stream(Invocation& call) {
  const StreamId stream = StreamId::parse(call.arguments.operands().front());
  StreamQuery query;
  constexpr Range versions{1, largest};
  if (const auto from = call.arguments.integer("--from", versions)) {
    query.from = StreamVersion{*from};
  }
  if (const auto to = call.arguments.integer("--to", versions)) query.to = StreamVersion{*to};
  query.limit = call.arguments.integer("--limit", {1, largest}).value_or(no_limit);
  query.with_tags = true;
  StoreSession session{call, {.only_reads = true}};
  const Codec codec = session.store().conventions().codec;
  Listing listing{call.out, description::event_of_stream};
  std::optional<Timestamp> before;
  for (const StoredEvent& event : session.store().read_stream(stream, query)) {
    listing.add({event, codec, before, /*has_tags=*/true});
    before = event.recorded_at;
  }
  if (!before) throw Exit{not_found, "the stream '" + stream.name() + "' has no events there"};
  listing.print();
  return done;
}

int state(Invocation& call) {
  const StreamId stream = StreamId::parse(call.arguments.operands().front());
  const App::StateReader* read = call.app.state_of(stream.category());
  if (read == nullptr) {
    throw Exit{failed, "'" + call.app.name + "' doesn't know the type behind '" +
                           std::string{stream.category()} +
                           "': an application that embeds stela::tool does, once it calls "
                           "app.aggregate<…>()"};
  }
  const auto at = call.arguments.text("--at");
  const Moment moment = at ? to_moment(*at, "--at") : Moment{};
  StoreSession session{call, {.only_reads = true}};
  const App::State shown = (*read)(session.store(), stream, moment);
  const std::string text =
      to_json({{"stream", stream.name()}, {"version", shown.version}, {"state", Json{shown.json}}});
  if (call.out.is_json()) {
    call.out.json(text);
  } else {
    call.out.line(indented_json(in_one_line(text)));
  }
  return done;
}

int list_snapshots(Invocation& call) {
  const StreamListing which = listing_of(call.arguments);
  StoreSession session{call, {.only_reads = true}};
  print_list(call.out, description::snapshot,
             StoreOperations{session.store()}.list_snapshots(which));
  return done;
}

std::vector<StreamId> snapshots_to_drop(Invocation& call, Store& store) {
  std::vector<StreamId> streams;
  const auto category = call.arguments.text("--category");
  const auto stream = call.arguments.text("--stream");
  if (int{category.has_value()} + int{stream.has_value()} + int{call.arguments.has("--all")} != 1) {
    throw Misuse{"which snapshots? Pass --stream ID, --category NAME or --all"};
  }
  for (const auto& entry :
       StoreOperations{store}.list_snapshots({.category = category.value_or("")})) {
    if (!stream || entry.stream == StreamId::parse(*stream)) streams.push_back(entry.stream);
  }
  return streams;
}

int drop_snapshots(Invocation& call) {
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  const auto streams = snapshots_to_drop(call, session.store());
  const std::string count = counted(static_cast<std::int64_t>(streams.size()), "snapshot");
  const bool dry = call.arguments.has("--dry-run");
  if (streams.empty() && call.arguments.has("--stream")) {
    throw Exit{not_found, "that stream has no snapshot"};
  }
  if (!dry && !call.confirm("Drop " + count + "? They can be rebuilt from the events.")) {
    return failed;
  }
  if (!dry) {
    for (const StreamId& stream : streams) session.store().drop_snapshot(stream);
  }
  print_result(call.out, {{"dropped", dry ? 0 : streams.size()}, {"found", streams.size()}},
               (dry ? "Would drop " : "Dropped ") + count + ".");
  return done;
}

}  // namespace

std::vector<Command> stream_commands() {
  return {
      {.path = "streams list",
       .summary = "List streams with their versions",
       .options = {db_option,
                   {"--category", "NAME", "only this category"},
                   {"--after", "ID", "only names after this one"},
                   limit_option},
       .examples = {{"all orders", "streams list --category order"}},
       .run = list_streams},
      {.path = "streams show",
       .summary = "Show a stream's events as a timeline",
       .operands = {{"STREAM", "its name: category-key"}},
       .options = {db_option,
                   {"--from", "VERSION", "first version"},
                   {"--to", "VERSION", "last version"},
                   {"--limit", "N", "at most this many"}},
       .examples = {{"what happened to an order", "streams show order-1001"}},
       .run = show_stream},
      {.path = "streams state",
       .summary = "Show an aggregate's state, now or at an earlier time",
       .about = "Available in tools built with an application's types.",
       .operands = {{"STREAM", "its name: category-key"}},
       .options = {db_option, {"--at", "MOMENT", "a version, a time, or how long ago"}},
       .examples = {{"as it was after its third event", "streams state order-1001 --at 3"}},
       .run = state},
  };
}

std::vector<Command> snapshot_commands() {
  return {
      {.path = "snapshots list",
       .summary = "List snapshots by stream",
       .options = {db_option,
                   {"--category", "NAME", "only this category"},
                   {"--after", "ID", "only names after this one"},
                   limit_option},
       .examples = {{"those of orders", "snapshots list --category order"}},
       .run = list_snapshots},
      {.path = "snapshots drop",
       .summary = "Delete snapshots; they are rebuilt from the events",
       .options = {db_option,
                   {"--stream", "ID", "of this stream"},
                   {"--category", "NAME", "of this category"},
                   {"--all", "", "all of them"},
                   dry_run_option,
                   yes_option},
       .examples = {{"after changing the layout of a state",
                     "snapshots drop --category order --yes"}},
       .run = drop_snapshots},
  };
}

}  // namespace stela::tool
