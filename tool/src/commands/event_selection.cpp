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

/// The first version of a stream whose event has at least this sequence: a stream's sequences grow
/// with its versions.
std::int64_t find_version(EventStore& store, const StreamId& stream, std::int64_t last,
                          GlobalSequence sequence) {
  std::int64_t low = 0;
  std::int64_t high = last + 1;
  while (high - low > 1) {
    const StreamVersion middle{low + (high - low) / 2};
    bool is_before = false;
    for (const StoredEvent& event : store.read_stream(stream, {.from = middle, .to = middle})) {
      is_before = event.sequence < sequence;
    }
    (is_before ? low : high) = middle.value();
  }
  return high;
}

/// Leaves as many sequences as a page may look at; false if there are no more.
bool cut(const Page& page, GlobalSequence& from, GlobalSequence& to) {
  if (!page.is_bounded() || to.value() - from.value() < most_looked) return false;
  (page.is_backward() ? from : to) = page.is_backward()
                                         ? GlobalSequence{to.value() - most_looked + 1}
                                         : GlobalSequence{from.value() + most_looked - 1};
  return true;
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

bool EventSelection::is_in_time(const StoredEvent& event) const {
  return (!query.since || event.recorded_at >= *query.since) &&
         (!query.until || event.recorded_at <= *query.until);
}

bool EventSelection::wants(const StoredEvent& event) const {
  const auto& types = query.event_types;
  return is_in_time(event) &&
         (types.empty() || std::find(types.begin(), types.end(), event.type()) != types.end());
}

void EventSelection::read_stream(EventStore& store, StreamQuery part, Page& page, Place place,
                                 Take take) const {
  if (query.from > GlobalSequence{1} || query.to < GlobalSequence::max()) {
    std::int64_t last = 0;
    for (const StoredEvent& event :
         store.read_stream(*stream, {.direction = Direction::backward, .limit = 1})) {
      last = event.version.value();
    }
    const auto version = [&](GlobalSequence at) { return find_version(store, *stream, last, at); };
    part.from = std::max(part.from, StreamVersion{version(query.from)});
    if (query.to < GlobalSequence::max()) {
      part.to = std::min(part.to, StreamVersion{version(query.to.next()) - 1});
    }
  }
  const bool is_filtered = query.since || query.until || !query.event_types.empty();
  part.direction = page.direction();
  part.limit = is_filtered ? no_limit : page.rows_read();
  for (const StoredEvent& event : store.read_stream(*stream, part)) {
    if (is_filtered && !page.look(place(event))) return;
    if (!wants(event)) continue;
    if (!page.take(place(event))) return;
    take(event);
  }
}

void EventSelection::read(StoreSession& session, Page& page, Take take) const {
  Store& store = session.store();
  if (stream) return read_stream(store, {}, page, sequence_of, take);
  AllQuery part = query;
  part.to = std::min(query.to, store.last_sequence());
  part.limit = page.rows_read();
  // On a server no index knows the types.
  const bool walks =
      session.place().is_on_server() && (!query.event_types.empty() || !query.categories.empty());
  const bool is_cut = walks && cut(page, part.from, part.to);
  for (const StoredEvent& event : store.read_all(part)) {
    if (!page.take(event.sequence.value())) return;
    take(event);
  }
  if (is_cut) page.stop((page.is_backward() ? part.from : part.to).value(), most_looked);
}

void EventSelection::read(StoreSession& session, const Query& asked, Page& page, Take take) const {
  Store& store = session.store();
  Query tagged = asked;
  bool walks = false;
  bool is_chosen_here = query.since || query.until;
  // On a server the index knows the tags, and no types.
  for (QueryItem& item : tagged.items) {
    if (item.types.empty() || !session.place().is_on_server() || !page.is_bounded()) continue;
    (item.tags.empty() ? walks : is_chosen_here) = true;
    if (!item.tags.empty()) item.types.clear();
  }
  GlobalSequence from = query.from;
  GlobalSequence to = std::min(query.to, store.last_sequence());
  const bool is_cut = walks && cut(page, from, to);
  const QueryRange range{.after = GlobalSequence{from.value() - 1},
                         .up_to = to,
                         .direction = page.direction(),
                         .limit = is_chosen_here ? no_limit : page.rows_read()};
  const auto is_wanted = [&](const StoredEvent& event) {
    return is_in_time(event) &&
           std::any_of(asked.items.begin(), asked.items.end(),
                       [&](const QueryItem& item) { return matches(item, event); });
  };
  for (const StoredEvent& event : store.read(tagged, range)) {
    if (is_chosen_here && !page.look(event.sequence.value())) return;
    if (is_chosen_here && !is_wanted(event)) continue;
    if (!page.take(event.sequence.value())) return;
    take(event);
  }
  if (is_cut) page.stop((page.is_backward() ? from : to).value(), most_looked);
}

void print_matching(Invocation& call, StoreSession& session, EventSelection& selection,
                    const Query& query, Page& page) {
  selection.seek(session.store());
  const Codec codec = session.store().conventions().codec;
  Listing listing{call.out, description::event_with_tags};
  selection.read(session, query, page, [&](const StoredEvent& event) {
    listing.add({event, codec, {}, /*has_tags=*/true});
  });
  listing.print();
  page.tell(call.out, "events", session.store().last_sequence().value());
}

}  // namespace stela::tool
