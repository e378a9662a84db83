// Writes and reads tags on PostgreSQL.
#pragma once

#include "database/postgres/connection.hpp"
#include "database/postgres/parameters.hpp"
#include "forgotten_keys.hpp"
#include "postgres/reading.hpp"
#include "postgres_sql/calls.hpp"

#include <stela/framework/detail/tag_facts.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {

/// The index key of a tag, as on SQLite.
std::int64_t hash_of_tag(std::string_view tag) noexcept;

/// Adds one element for each item of a query: types and tags separated by spaces, NULL for any, and
/// the hash of the first tag.
void add_query_items(const Query& query, sql::item_rows& items);

/// The stored tags of these events by sequence, without events that have none. CorruptEvent if one
/// doesn't match its checksum.
std::map<std::int64_t, std::string> read_tags(Connection& connection, Array& sequences);

/// Joins the parts of one event's stored tags: lines of a number, a checksum and tags.
std::string join_tag_parts(std::string_view lines, std::int64_t sequence);

TagFacts read_tag_facts(Connection& connection);
/// Also works outside of transactions, where a pooler's connection has no search_path.
PersonalTypes read_personal_types(Connection& connection);
void add_personal_types(Connection& connection, const PersonalTypes& types);
/// Records a type's declaration. Call it under the order lock.
void declare_tags(Connection& connection, std::span<const TagFact> additions);
/// TagsMissing if existing events lack a needed tag.
void check_needs(Connection& connection, std::span<const TagNeed> needs);
Standpoint read_standpoint(Connection& connection);
/// A row of append ids.
struct AppendRow {
  std::string_view id;
  std::int64_t first;
  std::int64_t last;
  std::int64_t checksum;
};
/// CorruptEvent if the row differs from what was stored.
AppendResult append_of(const AppendRow& row);
/// The sequence that a flush must cover to make the append durable.
std::int64_t sequence_of_append(const AppendResult& append) noexcept;
/// The append with this id, returned once it is durable.
std::optional<AppendResult> find_append(Reading& reading, std::string_view append_id);

}  // namespace stela::postgres
