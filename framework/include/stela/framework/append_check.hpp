// What every store checks before it appends.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>

namespace stela {

inline constexpr std::size_t max_append_id_size = 128;

/// UsageError unless the request can be stored: inside a replay, an event name that isn't one, a
/// payload larger than 64 MiB, a context that can't be kept.
STELA_FRAMEWORK_EXPORT void check_append(const AppendRequest& request);

/// UsageError: the append id stands for an append of other events.
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_id_of_another(std::string_view append_id);

}  // namespace stela
