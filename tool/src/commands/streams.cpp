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

/// Prints streams or snapshots in the order of the streams' names.
template <class Entry>
int list_by_name(Invocation& call, const Description<Entry>& description,
                 std::vector<Entry> (StoreOperations::*list)(const StreamListing&)) {
  StreamListing which{.category = call.arguments.text("--category").value_or(""),
                      .after = call.arguments.text("--after").value_or("")};
  Page page{call.arguments};
  StoreSession session{call, {.only_reads = true}};
  StoreOperations operations{session.store()};
  Listing<Entry> listing{call.out, description};
  for (bool goes_on = true; goes_on;) {
    which.limit = std::min(page.rows_read(), rows_at_once);
    const std::vector<Entry> entries = (operations.*list)(which);
    goes_on = static_cast<std::int64_t>(entries.size()) == which.limit;
    for (const Entry& entry : entries) {
      which.after = entry.stream.name();
      goes_on = page.take(which.after) && goes_on;
      if (page.is_complete()) listing.add(entry);
    }
  }
  listing.print();
  page.tell(call.out, "streams", 0);
  return done;
}

int list_streams(Invocation& call) {
  return list_by_name(call, description::stream, &StoreOperations::list_streams);
}

std::int64_t version_of(const StoredEvent& event) {
  return event.version.value();
}

int show_stream(Invocation& call) {
  // The numbers in its options are versions.
  EventSelection selection{call.arguments};
  const StreamQuery versions{.from = StreamVersion{selection.query.from.value()},
                             .to = StreamVersion{selection.query.to.value()},
                             .with_tags = true};
  selection.query.from = GlobalSequence{1};
  selection.query.to = GlobalSequence::max();
  selection.stream = StreamId::parse(call.arguments.operands().front());
  Page page{call.arguments, no_limit};
  StoreSession session{call, {.only_reads = true}};
  selection.seek(session.store());
  const Codec codec = session.store().conventions().codec;
  Listing listing{call.out, description::event_of_stream};
  std::optional<Timestamp> before;
  selection.read_stream(session.store(), versions, page, version_of, [&](const StoredEvent& event) {
    listing.add({event, codec, before});
    if (!page.is_backward()) before = event.recorded_at;
  });
  if (page.shown() == 0 && page.is_complete()) {
    throw Exit{not_found, "the stream '" + selection.stream->name() + "' has no events there"};
  }
  listing.print();
  page.tell(call.out, "events of the stream", 0);
  return done;
}

int state(Invocation& call) {
  const StreamId stream = StreamId::parse(call.arguments.operands().front());
  const App::StateReader* read = call.app.state_of(stream.category());
  if (read == nullptr) {
    throw Exit{usage, "'" + call.app.name + "' doesn't know the type behind '" +
                          std::string{stream.category()} +
                          "': an application that embeds stela::tool does, once it calls "
                          "app.aggregate<…>()"};
  }
  const auto at = call.arguments.text("--at");
  const Moment moment = at ? to_moment(*at, "--at") : Moment{};
  StoreSession session{call, {.only_reads = true}};
  const App::State shown = (*read)(session.store(), stream, moment);
  const std::string text = to_json(
      {{"stream", stream.name()}, {"stream_version", shown.version}, {"state", Json{shown.json}}});
  if (call.out.is_json()) {
    call.out.json(text);
  } else {
    call.out.line(indented_json(in_one_line(text)));
  }
  return done;
}

int list_snapshots(Invocation& call) {
  return list_by_name(call, description::snapshot, &StoreOperations::list_snapshots);
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
                   since_option,
                   until_option,
                   type_option,
                   newest_first_option,
                   {"--limit", "N", "at most this many"},
                   {"--after", "VERSION", "continue after this version"},
                   look_further_option},
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
