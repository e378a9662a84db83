#include "commands/event_selection.hpp"

#include "cli/exit.hpp"
#include "description/eventstore.hpp"
#include "event_text.hpp"

#include <stela/eventstore/operations.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

GlobalSequence moved(GlobalSequence sequence, std::int64_t by) {
  return GlobalSequence{std::max<std::int64_t>(sequence.value() + by, 1)};
}

/// The first version of a stream whose event has at least this sequence. In a stream, sequences
/// grow with versions.
StreamVersion find_version(EventStore& store, const StreamId& stream, std::int64_t last,
                           GlobalSequence sequence) {
  std::int64_t low = 0;
  std::int64_t high = last + 1;
  while (high - low > 1) {
    const StreamVersion middle{low + (high - low) / 2};
    EventRange one = store.read_stream(stream, {.from = middle, .to = middle});
    const auto page = one.next_page();
    (!page.empty() && page.front().sequence < sequence ? low : high) = middle.value();
  }
  return StreamVersion{high};
}

std::int64_t sequence_of(const StoredEvent& event) {
  return event.sequence.value();
}

}  // namespace

EventSelection::EventSelection(const Arguments& arguments) {
  constexpr Range sequences{1, largest};
  if (const auto from = arguments.integer("--from", sequences)) query.from = GlobalSequence{*from};
  if (const auto to = arguments.integer("--to", sequences)) query.to = GlobalSequence{*to};
  if (const auto since = arguments.text("--since")) query.since = to_time(*since, "--since");
  if (const auto until = arguments.text("--until")) query.until = to_time(*until, "--until");
  const auto after = arguments.integer("--after", {0, largest});
  if (arguments.has("--newest-first")) {
    query.direction = Direction::backward;
    if (after) query.to = std::min(query.to, GlobalSequence{*after - 1});
  } else if (after) {
    query.from = std::max(query.from, GlobalSequence{*after}.next());
  }
  query.categories = arguments.all("--category");
  query.event_types = arguments.all("--type");
  if (const auto name = arguments.text("--stream")) {
    stream = StreamId::parse(*name);
    if (!query.categories.empty()) {
      throw Misuse{"--stream names one stream, and its category with it; leave --category out"};
    }
  }
}

void EventSelection::seek(Store& store) {
  StoreOperations operations{store};
  if (query.since) {
    query.from = std::max(query.from, moved(operations.find_time(*query.since), -most_looked));
  }
  if (query.until) {
    query.to = std::min(query.to, moved(operations.find_time(*query.until), most_looked));
  }
}

bool EventSelection::has_times() const noexcept {
  return query.since || query.until;
}

bool EventSelection::cut(const Page& page, GlobalSequence& from, GlobalSequence& to) const {
  // Some events may be outside of the times.
  const std::int64_t width = has_times() ? 2 * most_looked : most_looked;
  if (!page.is_bounded() || to.value() - from.value() < width) return false;
  if (page.is_backward()) {
    from = GlobalSequence{to.value() - width + 1};
  } else {
    to = GlobalSequence{from.value() + width - 1};
  }
  return true;
}

void EventSelection::show(EventRange events, const Choose& choose, Page& page, Place place,
                          Take take) const {
  for (const StoredEvent& event : events) {
    const bool is_early = query.since && event.recorded_at < *query.since;
    if (is_early || (query.until && event.recorded_at > *query.until)) continue;
    if (choose && !page.look(place(event))) return;
    if (choose && !choose(event)) continue;
    if (!page.take(place(event))) return;
    take(event);
  }
}

void EventSelection::read_stream(EventStore& store, StreamQuery part, Page& page, Place place,
                                 Take take) const {
  if (query.from > GlobalSequence{1} || query.to < GlobalSequence::max()) {
    EventRange newest = store.read_stream(*stream, {.direction = Direction::backward, .limit = 1});
    const auto events = newest.next_page();
    const std::int64_t last = events.empty() ? 0 : events.front().version.value();
    part.from = std::max(part.from, find_version(store, *stream, last, query.from));
    part.up_to = query.to;
    if (page.is_backward()) {
      const StreamVersion behind = find_version(store, *stream, last, query.to.next());
      part.to = std::min(part.to, StreamVersion{behind.value() - 1});
    }
  }
  const auto& types = query.event_types;
  Choose choose;
  if (!types.empty()) {
    choose = [&](const StoredEvent& event) {
      return std::find(types.begin(), types.end(), event.type()) != types.end();
    };
  }
  part.direction = page.direction();
  part.limit = choose || has_times() ? no_limit : page.rows_read();
  show(store.read_stream(*stream, part), choose, page, place, take);
}

void EventSelection::read(StoreSession& session, Page& page, Take take) const {
  Store& store = session.store();
  if (stream) return read_stream(store, {.with_tags = query.with_tags}, page, sequence_of, take);
  AllQuery part = query;
  part.to = std::min(query.to, store.last_sequence());
  part.limit = page.rows_read();
  // A server has no index of a stream's types.
  const bool walks =
      session.place().is_on_server() && (!query.event_types.empty() || !query.categories.empty());
  const bool is_cut = walks && cut(page, part.from, part.to);
  show(store.read_all(part), {}, page, sequence_of, take);
  if (is_cut) page.stop((page.is_backward() ? part.from : part.to).value(), most_looked);
}

void EventSelection::read(StoreSession& session, const Query& asked, Page& page, Take take) const {
  Store& store = session.store();
  Query tagged = asked;
  bool walks = false;
  Choose choose;
  // A server's index covers tags, but not types.
  for (QueryItem& item : tagged.items) {
    if (item.types.empty() || !session.place().is_on_server() || !page.is_bounded()) continue;
    if (item.tags.empty()) {
      walks = true;
      continue;
    }
    item.types.clear();
    choose = [&](const StoredEvent& event) {
      return std::any_of(asked.items.begin(), asked.items.end(),
                         [&](const QueryItem& one) { return matches(one, event); });
    };
  }
  GlobalSequence from = query.from;
  GlobalSequence to = std::min(query.to, store.last_sequence());
  const bool is_cut = walks && cut(page, from, to);
  const QueryRange range{.after = GlobalSequence{from.value() - 1},
                         .up_to = to,
                         .direction = page.direction(),
                         .limit = choose || has_times() ? no_limit : page.rows_read()};
  show(store.read(tagged, range), choose, page, sequence_of, take);
  if (is_cut) page.stop((page.is_backward() ? from : to).value(), most_looked);
}

void print_matching(Invocation& call, StoreSession& session, EventSelection& selection,
                    const Query& query, Page& page) {
  selection.seek(session.store());
  const Codec codec = session.store().conventions().codec;
  Listing listing{call.out, description::event_with_tags};
  selection.read(session, query, page, [&](const StoredEvent& event) {
    listing.add({event, codec});
  });
  listing.print();
  page.tell(call.out, "events", session.store().last_sequence().value());
}

}  // namespace stela::tool
