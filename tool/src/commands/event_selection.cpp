#include "commands/event_selection.hpp"

#include "cli/exit.hpp"
#include "event_text.hpp"

#include <algorithm>

namespace stela::tool {

EventSelection::EventSelection(const Arguments& arguments) {
  constexpr Range sequences{1, largest};
  if (const auto from = arguments.integer("--from", sequences)) query.from = GlobalSequence{*from};
  if (const auto to = arguments.integer("--to", sequences)) query.to = GlobalSequence{*to};
  if (const auto since = arguments.text("--since")) query.since = to_time(*since, "--since");
  if (const auto until = arguments.text("--until")) query.until = to_time(*until, "--until");
  query.categories = arguments.all("--category");
  query.event_types = arguments.all("--type");
  if (const auto name = arguments.text("--stream")) {
    stream = StreamId::parse(*name);
    if (!query.categories.empty()) {
      throw Misuse{"--stream names one stream, and its category with it; leave --category out"};
    }
  }
}

bool EventSelection::wants(const StoredEvent& event) const {
  const auto& types = query.event_types;
  return event.sequence >= query.from && event.sequence <= query.to &&
         (!query.since || event.recorded_at >= *query.since) &&
         (!query.until || event.recorded_at <= *query.until) &&
         (types.empty() || std::find(types.begin(), types.end(), event.type()) != types.end());
}

void EventSelection::read(EventStore& store, FunctionRef<bool(const StoredEvent&)> take) const {
  if (!stream) {
    for (const StoredEvent& event : store.read_all(query)) {
      if (!take(event)) return;
    }
    return;
  }
  const StreamQuery of_stream{.up_to = query.to, .direction = query.direction};
  for (const StoredEvent& event : store.read_stream(*stream, of_stream)) {
    if (wants(event) && !take(event)) return;
  }
}

}  // namespace stela::tool
