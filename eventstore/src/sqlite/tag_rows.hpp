// Rows of tags: writing and reading them.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/tags.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// The index key of a tag: the XXH3-64 of its text. Two tags may share one.
std::int64_t hash_of_tag(std::string_view tag) noexcept;

struct TaggedEvent {
  std::int64_t sequence = 0;
  std::int64_t kind = 0;
};

/// Writes the tags of an event without any; `text` is their stored form, and not empty.
void insert_tags(Connection& connection, const TaggedEvent& event, std::string_view text);
/// Adds tags to an event that may have some.
void add_tags(Connection& connection, const TaggedEvent& event, std::string_view text);

/// Reads an event's tags, in stored form, into `text`; empty if it has none. CorruptEvent if they
/// don't match their checksum.
void read_tags(Connection& connection, std::int64_t sequence, std::string& text);

/// CorruptEvent if the row of event_tags differs from what was stored.
void check_tags(std::int64_t sequence, std::int64_t part, std::string_view text,
                std::int64_t checksum);
/// The checksum of a row of event_tags.
std::int64_t checksum_of_tags(std::int64_t sequence, std::int64_t part, std::string_view text);

}  // namespace stela::sqlite
