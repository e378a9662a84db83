// Checksums of stored data; docs/schema.md defines them as a format.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/stored_event.hpp>

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace stela::database {

/// XXH3-64 of the numbers, each as 8 bytes in little-endian order; then of each text in turn,
/// seeded by the hash before it.
STELA_EVENTSTORE_EXPORT std::int64_t checksum_of(std::initializer_list<std::int64_t> numbers,
                                                 std::initializer_list<std::string_view> texts);

/// Covers all data of an event, including the names of its stream and type: after a change of any
/// byte of its row, its stream's name or its kind, the event no longer matches.
std::int64_t event_checksum(const StoredEvent& event) noexcept;

/// XXH3-64 of a text.
STELA_EVENTSTORE_EXPORT std::uint64_t text_checksum(std::string_view text) noexcept;

}  // namespace stela::database
