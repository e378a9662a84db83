// Checks that every store makes before it appends.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>

namespace stela {

inline constexpr std::size_t max_append_id_size = 128;

/// UsageError if the request can't be stored: during a replay, with an invalid event name, with a
/// payload larger than 64 MiB, with a context or an append id that can't be stored, or with a
/// condition of another store than that of `conventions`.
STELA_FRAMEWORK_EXPORT void check_append(const AppendRequest& request,
                                         const Conventions& conventions);

/// UsageError: the append id was used for an append of other events.
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_id_of_another(std::string_view append_id);

}  // namespace stela
