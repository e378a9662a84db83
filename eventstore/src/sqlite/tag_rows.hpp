// Rows of tags: written with events, and read back.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/tags.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::sqlite {

/// How the index knows a tag: the XXH3-64 of its text. Two tags may have the same.
std::int64_t hash_of_tag(std::string_view tag) noexcept;

struct TaggedEvent {
  std::int64_t sequence = 0;
  std::int64_t kind = 0;
};

/// Writes the tags of an event that has none yet; `text` is their stored form, and not empty.
void insert_tags(Connection& connection, const TaggedEvent& event, std::string_view text);
/// Writes more tags of an event that may have some.
void add_tags(Connection& connection, const TaggedEvent& event, std::string_view text);

/// The stored form of an event's tags, in `text`; empty if it has none. CorruptEvent if they don't
/// match their checksum.
void read_tags(Connection& connection, std::int64_t sequence, std::string& text);

/// CorruptEvent if that isn't what the row of event_tags was written with.
void check_tags(std::int64_t sequence, std::int64_t part, std::string_view text,
                std::int64_t checksum);
/// For the check of a row of event_tags.
std::int64_t checksum_of_tags(std::int64_t sequence, std::int64_t part, std::string_view text);

}  // namespace stela::sqlite
