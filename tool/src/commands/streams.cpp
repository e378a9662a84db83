// streams list, show, state; snapshots list, drop.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "event_text.hpp"
#include "session.hpp"

#include <stela/eventstore/catalogue.hpp>
#include <stela/framework/codec/json_writer.hpp>

#include <optional>

namespace stela::tool {
namespace {

constexpr std::int64_t default_limit = 100;

StreamListing listing_of(const Arguments& arguments) {
  return {.category = arguments.text("--category").value_or(""),
          .after = arguments.text("--after").value_or(""),
          .limit = arguments.integer("--limit", {1, largest}).value_or(default_limit)};
}

int list(Invocation& call) {
  const StreamListing which = listing_of(call.arguments);
  Session session{call, {.only_reads = true}};
  const auto streams = list_streams(session.store(), which);
  Table table{{{"STREAM"},
               {"VERSION", Table::Align::right},
               {"LAST EVENT", Table::Align::right},
               {"CHANGED AT"}}};
  for (const StreamEntry& entry : streams) {
    if (call.out.is_json()) {
      std::string text;
      json::ObjectWriter{text}
          .add("stream", entry.stream.name())
          .add("version", entry.version.value())
          .add("last_sequence", entry.last.value())
          .add("changed_at", to_string(entry.changed_at))
          .close();
      call.out.json(text);
    } else {
      table.add({entry.stream.name(), in_digits(entry.version.value()),
                 std::to_string(entry.last.value()), short_time(entry.changed_at)});
    }
  }
  if (!call.out.is_json()) table.print(call.out);
  if (static_cast<std::int64_t>(streams.size()) == which.limit) {
    call.out.note("More results: use --after " + in_one_line(streams.back().stream.name()) +
                  " goes on.");
  }
  return done;
}

/// Who did it, for a line of a timeline.
std::string actor_of(const StoredEvent& event) try {
  return event.context().actor;
} catch (const CorruptEvent&) {
  return "?";
}

int show(Invocation& call) {
  const StreamId stream = StreamId::parse(call.arguments.operands().front());
  StreamQuery query;
  constexpr Range versions{1, largest};
  if (const auto from = call.arguments.integer("--from", versions)) {
    query.from = StreamVersion{*from};
  }
  if (const auto to = call.arguments.integer("--to", versions)) query.to = StreamVersion{*to};
  query.limit = call.arguments.integer("--limit", {1, largest}).value_or(no_limit);
  Session session{call, {.only_reads = true}};
  const Codec codec = session.store().conventions().codec;
  Table table{{{"VERSION", Table::Align::right},
               {"RECORDED AT"},
               {"LATER BY", Table::Align::right},
               {"SEQUENCE", Table::Align::right},
               {"TYPE"},
               {"ACTOR"},
               {"PAYLOAD"}}};
  std::optional<Timestamp> before;
  for (const StoredEvent& event : session.store().read_stream(stream, query)) {
    if (call.out.is_json()) {
      call.out.json(to_json(event, codec));
    } else {
      table.add({std::to_string(event.version.value()), short_time(event.recorded_at),
                 before ? in_words(event.recorded_at - *before) : "",
                 std::to_string(event.sequence.value()), event.type(), actor_of(event),
                 payload_in_line(event, codec)});
    }
    before = event.recorded_at;
  }
  if (!before) throw Exit{not_found, "the stream '" + stream.name() + "' has no events there"};
  if (!call.out.is_json()) table.print(call.out);
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
  Session session{call, {.only_reads = true}};
  const App::State shown = (*read)(session.store(), stream, moment);
  std::string text;
  json::ObjectWriter object{text};
  object.add("stream", stream.name()).add("version", shown.version.value());
  object.key("state").append(shown.json);
  object.close();
  if (call.out.is_json()) {
    call.out.json(text);
  } else {
    call.out.line(indented_json(in_one_line(text)));
  }
  return done;
}

int list_snapshots(Invocation& call) {
  const StreamListing which = listing_of(call.arguments);
  Session session{call, {.only_reads = true}};
  Table table{{{"STREAM"},
               {"VERSION", Table::Align::right},
               {"STATE VERSION", Table::Align::right},
               {"SIZE", Table::Align::right},
               {"TAKEN AT"}}};
  for (const SnapshotEntry& entry : list_snapshots(session.store(), which)) {
    if (call.out.is_json()) {
      std::string text;
      json::ObjectWriter{text}
          .add("stream", entry.stream.name())
          .add("version", entry.version.value())
          .add("sequence", entry.sequence.value())
          .add("state_version", entry.state_version)
          .add("bytes", entry.bytes)
          .add("taken_at", to_string(entry.taken_at))
          .close();
      call.out.json(text);
    } else {
      table.add({entry.stream.name(), in_digits(entry.version.value()),
                 std::to_string(entry.state_version), in_bytes(entry.bytes),
                 short_time(entry.taken_at)});
    }
  }
  if (!call.out.is_json()) table.print(call.out);
  return done;
}

std::vector<StreamId> snapshots_to_drop(Invocation& call, Store& store) {
  std::vector<StreamId> streams;
  const auto category = call.arguments.text("--category");
  const auto stream = call.arguments.text("--stream");
  if (int{category.has_value()} + int{stream.has_value()} + int{call.arguments.has("--all")} != 1) {
    throw Misuse{"which snapshots? Pass --stream ID, --category NAME or --all"};
  }
  for (const auto& entry : list_snapshots(store, {.category = category.value_or("")})) {
    if (!stream || entry.stream == StreamId::parse(*stream)) streams.push_back(entry.stream);
  }
  return streams;
}

int drop_snapshots(Invocation& call) {
  Session session{call};
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
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter{text}
        .add("dropped", dry ? 0 : streams.size())
        .add("found", streams.size())
        .close();
    call.out.json(text);
  } else {
    call.out.line((dry ? "Would drop " : "Dropped ") + count + ".");
  }
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
       .run = list},
      {.path = "streams show",
       .summary = "Show a stream's events as a timeline",
       .operands = {{"STREAM", "its name: category-key"}},
       .options = {db_option,
                   {"--from", "VERSION", "first version"},
                   {"--to", "VERSION", "last version"},
                   {"--limit", "N", "at most this many"}},
       .examples = {{"what happened to an order", "streams show order-1001"}},
       .run = show},
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
