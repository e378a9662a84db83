// Checks that every store makes before it appends.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>

#include <map>

namespace stela {

inline constexpr std::size_t max_append_id_size = 128;

/// UsageError if the request can't be stored: during a replay, with an invalid event name, with a
/// payload larger than 64 MiB, with a context or an append id that can't be stored, or with a
/// condition of another store than that of `conventions`.
STELA_FRAMEWORK_EXPORT void check_append(const AppendRequest& request,
                                         const Conventions& conventions);

/// An append's events in one stream, and the version that it left there.
struct AppendedEvents {
  std::int64_t count = 0, version = 0;
};
using AppendedStreams = std::map<std::string, AppendedEvents, std::less<>>;

/// Adds to `result` the versions of a request whose append id was used before, for an append to
/// these streams, by name. UsageError if that was an append of other events.
STELA_FRAMEWORK_EXPORT void repeat_append(const AppendRequest& request, AppendedStreams appended,
                                          AppendResult& result);

}  // namespace stela
