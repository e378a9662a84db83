// The options that select events, for the commands that show them.
#pragma once

#include "commands/page.hpp"
#include "store_session.hpp"

#include <stela/framework/event_store.hpp>

#include <functional>
#include <limits>
#include <optional>

namespace stela::tool {

inline constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

inline constexpr Option from_option{"--from", "SEQUENCE", "from this sequence on"};
inline constexpr Option to_option{"--to", "SEQUENCE", "up to this sequence"};
inline constexpr Option since_option{
    "--since", "TIME",
    "recorded since: 2026-11-23, 2026-11-23T10:00+02:00, or 15m for 15 minutes "
    "ago"};
inline constexpr Option until_option{"--until", "TIME", "recorded until, given as for --since"};
inline constexpr Option stream_option{"--stream", "ID", "only this stream"};
inline constexpr Option category_option{"--category", "NAME", "only streams of this category", "",
                                        true};
inline constexpr Option type_option{"--type", "NAME", "only events of this type", "", true};
inline constexpr Option after_event_option{"--after", "SEQUENCE", "continue after this sequence"};

/// The events selected by --from, --to, --after, --since, --until, --category, --type, --stream and
/// --newest-first, one at a time. Threads: one at a time.
class EventSelection {
 public:
  using Take = FunctionRef<void(const StoredEvent&)>;
  using Place = std::int64_t (*)(const StoredEvent&);

  explicit EventSelection(const Arguments& arguments);

  AllQuery query;
  std::optional<StreamId> stream = {};

  /// Narrows the sequences to those of the times. Recorded times rise with sequences unless clocks
  /// were set or differ, so this allows for 20,000 events out of order.
  void seek(Store& store);
  /// Calls `take` for each event until the page is full, or its limit of examined rows is reached.
  void read(StoreSession& session, Page& page, Take take) const;
  /// As above, for the events that match a query.
  void read(StoreSession& session, const Query& asked, Page& page, Take take) const;
  /// As above, for a part of `stream`. `place` gives the number that the page continues after.
  void read_stream(EventStore& store, StreamQuery part, Page& page, Place place, Take take) const;

 private:
  using Choose = std::function<bool(const StoredEvent&)>;

  bool has_times() const noexcept;
  /// Limits the sequences to as many as the page may examine. False if there are no more.
  bool cut(const Page& page, GlobalSequence& from, GlobalSequence& to) const;
  /// Takes the events that are in time and chosen; without `choose`, all that are in time.
  void show(EventRange events, const Choose& choose, Page& page, Place place, Take take) const;
};

/// Prints the events that match a query, with their tags, and how to get more.
void print_matching(Invocation& call, StoreSession& session, EventSelection& selection,
                    const Query& query, Page& page);

}  // namespace stela::tool
