// The options that choose events, for the commands that show them.
#pragma once

#include "cli/invocation.hpp"

#include <stela/framework/event_store.hpp>

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
inline constexpr Option limit_option{"--limit", "N", "at most this many (default 100)"};

/// What --from, --to, --since, --until, --category, --type and --stream select, one event at a
/// time. Threads: one at a time.
class EventSelection {
 public:
  explicit EventSelection(const Arguments& arguments);

  AllQuery query;
  std::optional<StreamId> stream = {};

  /// Calls `take` for each event until it returns false.
  void read(EventStore& store, FunctionRef<bool(const StoredEvent&)> take) const;

 private:
  bool wants(const StoredEvent& event) const;
};

}  // namespace stela::tool
