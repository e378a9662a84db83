// events list, show, tail, stats.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_links.hpp"
#include "commands/event_selection.hpp"
#include "description/eventstore.hpp"
#include "diagnosis/chain.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace stela::tool {
namespace {

constexpr std::int64_t tailed_events = 10;
constexpr std::int64_t max_effects = 100;

Codec codec_of(EventStore& store) {
  return store.conventions().codec;
}

void require_stream(EventStore& store, const StreamId& stream) {
  for ([[maybe_unused]] const StoredEvent& event : store.read_stream(stream, {})) return;
  throw Exit{not_found, "there is no stream '" + stream.name() + "'"};
}

void print_head(Invocation& call, GlobalSequence head) {
  print_result(call.out, {{"head", head}}, "head: " + std::to_string(head.value()));
}

/// Lists the events of a correlation, or the effects of an event.
int list_linked(Invocation& call, LinkQuery query, const AllQuery& selected, std::int64_t limit) {
  const bool newest_first = call.arguments.has("--newest-first");
  query.from = selected.from;
  query.to = selected.to;
  query.direction = newest_first ? Direction::backward : Direction::forward;
  query.limit = limit < largest ? limit + 1 : limit;
  StoreSession session{call, {.only_reads = true}};
  auto found = StoreOperations{session.store()}.linked_events(query);
  const bool has_more = std::ssize(found.sequences) > limit;
  const GlobalSequence next = has_more ? found.sequences.back() : GlobalSequence{};
  if (has_more) found.sequences.pop_back();
  const Codec codec = codec_of(session.store());
  Listing listing{call.out, description::event};
  // Each call returns them in ascending order.
  for (const GlobalSequence sequence : found.sequences) {
    for (const StoredEvent& event : session.store().read_at({{sequence}})) {
      listing.add({event, codec});
    }
  }
  listing.print();
  if (has_more) {
    call.out.more({newest_first ? "--to" : "--from", std::to_string(next.value())});
  }
  note_skipped(call, found.skipped);
  return done;
}

int list_events(Invocation& call) {
  EventSelection selection{call.arguments};
  if (const auto links = links_asked_for(call.arguments)) {
    const std::int64_t limit = call.arguments.integer("--limit", {1, largest}).value_or(100);
    return list_linked(call, *links, selection.query, limit);
  }
  selection.query.with_tags = call.out.is_json();
  Page page{call.arguments};
  StoreSession session{call, {.only_reads = true}};
  if (selection.stream) require_stream(session.store(), *selection.stream);
  selection.seek(session.store());
  const Codec codec = codec_of(session.store());
  Listing listing{call.out, description::event};
  selection.read(session, page, [&](const StoredEvent& event) { listing.add({event, codec}); });
  listing.print();
  page.tell(call.out, "events", session.store().last_sequence().value());
  return done;
}

/// Describes each of the existing events: "event 3 (order.placed v1, version 1 of order-7)".
std::vector<std::string> describe(EventStore& store, std::span<const GlobalSequence> sequences) {
  std::vector<std::string> lines;
  for (const StoredEvent& event : store.read_at(sequences)) lines.push_back(event.describe());
  return lines;
}

/// The place of the event's message, if it has one.
std::string publication_of(StoreSession& session, const StoredEvent& event) {
  if (!event.publishes()) return "not one that is published";
  if (!session.has_outbox()) return "to be published; there is no outbox";
  const auto message = session.operations().show(event.sequence);
  return message ? tool::describe(*message, {}).sentence
                 : "not published: it is older than the outbox";
}

void show_sheet(Invocation& call, StoreSession& session, const StoredEvent& event,
                std::span<const GlobalSequence> effects) {
  Store& store = session.store();
  Sheet sheet;
  sheet.add("sequence", std::to_string(event.sequence.value()))
      .add("stream", event.stream.name() + " at version " + std::to_string(event.version.value()))
      .add("type", event.type() + " v" + std::to_string(event.schema_version()))
      .add("id", event.id.to_string())
      .add("recorded at", to_string(event.recorded_at))
      .add("publication", publication_of(session, event))
      .add("correlation", event.correlation_id());
  split_tags(event.tags, [&](std::string_view tag) { sheet.add("tag", std::string{tag}); });
  if (!event.causation_id.is_nil()) {
    const auto cause = StoreOperations{store}.find_event(event.causation_id, most_near);
    const auto lines = cause ? describe(store, {{*cause}}) : std::vector<std::string>{};
    sheet.add("cause", lines.empty() ? event.causation_id.to_string() : lines.front());
  }
  for (const std::string& effect : describe(store, effects)) sheet.add("effect", effect);
  if (!event.metadata.empty()) sheet.add("metadata", indented_json(in_one_line(event.metadata)));
  const Codec codec = codec_of(store);
  sheet.add("payload", codec == Codec::json ? indented_json(in_one_line(event.payload))
                                            : payload_in_line(event, codec));
  sheet.print(call.out);
}

Json effects_in_json(Store& store, std::span<const GlobalSequence> effects) {
  Json list{"["};
  for (const StoredEvent& event : store.read_at(effects)) {
    if (list.text.size() > 1) list.text += ',';
    list.text += to_json({{"sequence", event.sequence},
                          {"stream", event.stream.name()},
                          {"stream_version", event.version},
                          {"id", event.id},
                          {"type", event.type()}});
  }
  list.text += ']';
  return list;
}

int show_event(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  Store& store = session.store();
  for (const StoredEvent& event : store.read_at({{event_asked_for(call, session)}})) {
    auto found = StoreOperations{store}.linked_events(
        {.cause = event.id, .from = event.sequence.next(), .limit = max_effects + 1});
    const bool has_more = std::ssize(found.sequences) > max_effects;
    if (has_more) found.sequences.pop_back();
    if (call.out.is_json()) {
      print_json(call.out, description::event, {event, codec_of(store)},
                 {{"effects", effects_in_json(store, found.sequences)}});
    } else {
      show_sheet(call, session, event, found.sequences);
    }
    if (has_more) {
      call.out.note("More effects: use events list --causation " + event.id.to_string());
    }
    note_skipped(call, found.skipped);
  }
  return done;
}

/// Parses the items of a query; --or begins another item.
Query events_asked_for(const Arguments& arguments) {
  Query query{.items = {QueryItem{}}};
  arguments.for_each([&](std::string_view option, const std::string& value) {
    if (option == "--type") query.items.back().types.push_back(value);
    if (option == "--tag") query.items.back().tags.push_back(Tag::parse(value));
    if (option == "--or") query.items.emplace_back();
  });
  for (const QueryItem& item : query.items) {
    if (!item.types.empty() || !item.tags.empty()) continue;
    throw Misuse{"a query names types or tags: --type NAME, --tag TAG; --or begins another one"};
  }
  return query;
}

int query(Invocation& call) {
  const Query query = events_asked_for(call.arguments);
  EventSelection selection{call.arguments};
  Page page{call.arguments, no_limit};
  StoreSession session{call, {.only_reads = true, .reads_durably = true}};
  const GlobalSequence head = session.store().last_sequence();
  selection.query.to = std::min(selection.query.to, head);
  print_matching(call, session, selection, query, page);
  // The head is only valid for a complete result.
  if (page.is_complete()) print_head(call, head);
  return done;
}

int head(Invocation& call) {
  StoreSession session{call, {.only_reads = true, .reads_durably = true}};
  print_head(call, session.store().last_sequence());
  return done;
}

void print_tailed(Invocation& call, const StoredEvent& event, Codec codec) {
  if (call.out.is_json()) return print_json(call.out, description::event, {event, codec});
  call.out.line(std::to_string(event.sequence.value()) + "  " + short_time(event.recorded_at) +
                "  " + event.stream.name() + "@" + std::to_string(event.version.value()) + "  " +
                event.type() + "  " + payload_in_line(event, codec));
}

/// Follows events, and survives a database that can't be reached for a while.
class Tail {
 public:
  Tail(Invocation& call, StoreSession& session, EventSelection& selection, const Signals& signals)
      : call_{call}, session_{session}, selection_{selection}, signals_{signals} {}

  void run(std::int64_t limit) {
    limit_ = limit;
    while (!signals_.stopped() && count_ < limit_) {
      try {
        const bool has_come = print_new();
        pause_ = first_pause;
        if (!has_come) wait(look_again);
      } catch (const Error& e) {
        if (!e.is_retryable()) throw;
        tell(e);
        wait(pause_);
        pause_ = std::min(2 * pause_, longest_pause);
      }
    }
  }

 private:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr std::int64_t most_at_once = 1000;
  static constexpr Milliseconds look_again{50};
  static constexpr Milliseconds first_pause{500};
  static constexpr Milliseconds longest_pause{30'000};

  /// Prints the events committed since the last call; false if there were none.
  bool print_new() {
    GlobalSequence& next = selection_.query.from;
    const GlobalSequence last = store_.last_sequence();
    if (last < seen_) {
      call_.out.note("The store ends at event " + std::to_string(last.value()) + ", after " +
                     std::to_string(seen_.value()) +
                     " was seen: a failover lost events. What comes now follows.");
      next = last.next();
    }
    seen_ = last;
    if (last < next) return false;
    selection_.query.to = last;
    // Prints a limited number, so that a signal can end it.
    Page page{std::min(limit_ - count_, most_at_once), Direction::forward, /*looks_further=*/true};
    selection_.read(session_, page, [&](const StoredEvent& event) {
      print_tailed(call_, event, codec_of(store_));
      // Printed events aren't read again after a failure.
      next = event.sequence.next();
      ++count_;
    });
    call_.out.flush();
    if (page.is_complete()) next = last.next();
    return true;
  }

  void tell(const Error& error) {
    call_.out.flush();
    call_.out.note(in_one_line(error.what()) + " (trying again in " + in_words(pause_) + ')');
  }

  void wait(Milliseconds time) {
    if (Output::is_reader_gone()) throw ReaderGone{};
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, signals_.token(), time, [] { return false; });
  }

  Invocation& call_;
  StoreSession& session_;
  Store& store_ = session_.store();
  EventSelection& selection_;
  const Signals& signals_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::int64_t limit_ = 0;
  std::int64_t count_ = 0;
  /// The last sequence at the previous look.
  GlobalSequence seen_{0};
  Milliseconds pause_ = first_pause;
};

int tail(Invocation& call) {
  EventSelection selection{call.arguments};
  selection.query.with_tags = call.out.is_json();
  const std::int64_t limit = call.arguments.integer("--limit", {1, largest}).value_or(largest);
  const Signals signals{call};
  StoreSession session{call, {.only_reads = true}};
  Store& store = session.store();
  selection.seek(store);
  const auto begins = {"--from", "--after", "--since"};
  const bool has_begin = std::any_of(begins.begin(), begins.end(), [&](std::string_view option) {
    return call.arguments.has(option);
  });
  if (!has_begin) {
    EventSelection last = selection;
    Page page{tailed_events, Direction::backward};
    selection.query.from = store.last_sequence().next();
    last.query.direction = Direction::backward;
    last.read(session, page,
              [&](const StoredEvent& event) { selection.query.from = event.sequence; });
  }
  Tail{call, session, selection, signals}.run(limit);
  return done;
}

int stats(Invocation& call) {
  const Signals signals{call};
  StoreSession session{call, {.only_reads = true}};
  const std::int64_t head = session.store().last_sequence().value();
  const std::int64_t passed =
      call.arguments.has("--look-further") ? 0 : std::max<std::int64_t>(head - most_looked, 0);
  ProgressBar bar{call.out, "events"};
  auto kinds = StoreOperations{session.store()}.count_events(
      {.from = GlobalSequence{passed + 1},
       .progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
       .stop = signals.token()});
  bar.clear();
  if (signals.stopped()) return interrupted;
  std::sort(kinds.begin(), kinds.end(),
            [](const auto& a, const auto& b) { return a.events > b.events; });
  print_list(call.out, description::kind_of_event, kinds);
  if (passed > 0) {
    call.out.note("Of the newest " + in_digits(most_looked) + " of " + counted(head, "event") +
                  "; all: --look-further");
  }
  if (call.out.is_json()) return done;
  std::int64_t events = 0;
  std::int64_t bytes = 0;
  for (const KindCount& kind : kinds) {
    events += kind.events;
    bytes += kind.payload_bytes;
  }
  call.out.line();
  call.out.line(counted(events, "event") + " with " + in_bytes(bytes) + " of payload.");
  return done;
}

}  // namespace

std::vector<Command> event_commands() {
  return {
      append_command(),
      {.path = "events list",
       .summary = "List events by sequence",
       .options = {db_option, from_option, to_option, since_option, until_option, stream_option,
                   category_option, type_option, correlation_option, causation_option,
                   newest_first_option, limit_option, after_event_option, look_further_option},
       .examples = {{"what happened in the last hour", "events list --since 1h"},
                    {"one order's, as JSON", "events list --stream order-1001 --json"},
                    {"all that one request led to", "events list --correlation request-4711"}},
       .run = list_events},
      {.path = "events show",
       .summary = "Show one event with payload, metadata, cause and effects",
       .operands = {{"EVENT", "its sequence, or its id"}},
       .options = {db_option, look_for_id_option},
       .examples = {{"by its sequence", "events show 17"}},
       .run = show_event},
      {.path = "events query",
       .summary = "Read events by type and tag, as a decision does",
       .about =
           "An item matches events of one of its types that have all of its tags; --or begins "
           "another item, and an event that matches any is printed once. The stream of an event is "
           "one of its tags. The last line is the head: the position at which all of it was "
           "answered, and the \"after\" of an append's condition.",
       .options = {db_option,
                   {"--type", "NAME", "events of this type, or of another one given", "", true},
                   {"--tag", "TAG", "events with this tag, and every other one given", "", true},
                   {"--or", "", "begin another item", "", true},
                   since_option,
                   until_option,
                   newest_first_option,
                   {"--limit", "N", "at most this many; then the head is left out"},
                   {"--after", "SEQUENCE", "only events after this position"},
                   look_further_option},
       .examples = {{"what a decision about a course has to know",
                     "events query --type course.subscribed --tag course-c1 --json"},
                    {"of two items", "events query --tag course-c1 --or --tag student-s1"}},
       .run = query},
      {.path = "events head",
       .summary = "Print the position of the last event",
       .options = {db_option},
       .examples = {{"as JSON", "events head --json"}},
       .run = head},
      {.path = "events tail",
       .summary = "Follow events as they are committed",
       .about =
           "Starts with the last ten events that it selects, or at --from, --after or --since. "
           "While the database can't be reached, it says so on stderr and tries again, with pauses "
           "that grow to 30 s. Ctrl-C ends it, with exit code 0.",
       .options = {db_option,
                   from_option,
                   {"--after", "SEQUENCE", "after this sequence"},
                   since_option,
                   stream_option,
                   category_option,
                   type_option,
                   {"--limit", "N", "stop after this many events"}},
       .examples = {{"every order that is placed", "events tail --type order.placed"}},
       .run = tail},
      {.path = "events stats",
       .summary = "Count events by category and type",
       .about = "Of more than 20,000 events it counts the newest 20,000, and says so.",
       .options = {db_option, {"--look-further", "", "count all events"}},
       .examples = {{"as JSON, for a script", "events stats --json"}},
       .run = stats},
  };
}

}  // namespace stela::tool
