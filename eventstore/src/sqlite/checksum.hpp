// The checksums that stand beside payloads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace stela::sqlite {

/// XXH3-64 of the payload, seeded by that of the metadata, seeded by the sequence: a payload that
/// is changed, or put under another event, doesn't match.
std::int64_t event_checksum(std::int64_t sequence, std::string_view metadata,
                            std::string_view payload) noexcept;

/// The same for a snapshot, seeded by its numbers one after the other.
std::int64_t snapshot_checksum(std::initializer_list<std::int64_t> numbers,
                               std::string_view payload) noexcept;

}  // namespace stela::sqlite
