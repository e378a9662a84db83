// Checksums with numbers that the server assigns, and so mixes in itself: stela.rotated.
#pragma once

#include "database/checksum.hpp"

#include <stela/framework/stored_event.hpp>

#include <bit>
#include <cstdint>
#include <string_view>

namespace stela::postgres {

constexpr std::int64_t rotated(std::int64_t number, int bits) noexcept {
  return std::bit_cast<std::int64_t>(std::rotl(std::bit_cast<std::uint64_t>(number), bits));
}

/// The checksum of an event without its sequence and versions.
inline std::int64_t content_checksum(const StoredEvent& event) noexcept {
  return database::event_checksum({.sequence = {},
                                   .stream = event.stream,
                                   .version = {},
                                   .kind = event.kind,
                                   .id = event.id,
                                   .recorded_at = event.recorded_at,
                                   .correlation = event.correlation,
                                   .causation_id = event.causation_id,
                                   .metadata = event.metadata,
                                   .published_before = {},
                                   .payload = event.payload});
}

inline std::int64_t event_checksum(const StoredEvent& event) noexcept {
  return content_checksum(event) ^ rotated(event.sequence.value(), 7) ^
         rotated(event.version.value(), 31) ^ rotated(event.published_before.value(), 53);
}

/// The checksum of an append id without its sequences.
inline std::int64_t id_checksum(std::string_view append_id) {
  return database::checksum_of({0, 0}, {append_id});
}

inline std::int64_t id_checksum(std::string_view append_id, std::int64_t first, std::int64_t last) {
  return id_checksum(append_id) ^ rotated(first, 7) ^ rotated(last, 31);
}

/// The checksum of the first part of an event's tags, without its sequence.
inline std::int64_t tags_checksum(std::string_view tags) {
  return database::checksum_of({0, 0}, {tags});
}

inline std::int64_t tags_checksum(std::string_view tags, std::int64_t sequence, std::int64_t part) {
  return database::checksum_of({0, part}, {tags}) ^ rotated(sequence, 7);
}

}  // namespace stela::postgres
