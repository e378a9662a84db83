#include "sqlite/tag_rows.hpp"

#include "database/checksum.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

namespace stela::sqlite {

std::int64_t hash_of_tag(std::string_view tag) noexcept {
  return static_cast<std::int64_t>(database::text_checksum(tag));
}

std::int64_t checksum_of_tags(std::int64_t sequence, std::int64_t part, std::string_view text) {
  return database::checksum_of({sequence, part}, {text});
}

namespace {

void insert_part(Connection& connection, const TaggedEvent& event, std::int64_t part,
                 std::string_view text) {
  connection.run(sql::insert_event_tags{.sequence = event.sequence,
                                        .part = part,
                                        .tags = text,
                                        .checksum = checksum_of_tags(event.sequence, part, text)});
  split_tags(text, [&](std::string_view tag) {
    connection.run(
        sql::insert_tag{.tag = hash_of_tag(tag), .sequence = event.sequence, .kind = event.kind});
  });
}

}  // namespace

void insert_tags(Connection& connection, const TaggedEvent& event, std::string_view text) {
  insert_part(connection, event, 0, text);
}

void add_tags(Connection& connection, const TaggedEvent& event, std::string_view text) {
  std::int64_t part = 0;
  {
    auto parts = connection.rows(sql::tags_of_event{.sequence = event.sequence});
    while (parts.step()) part = parts.part() + 1;
  }
  insert_part(connection, event, part, text);
}

void check_tags(std::int64_t sequence, std::int64_t part, std::string_view text,
                std::int64_t checksum) {
  if (checksum == checksum_of_tags(sequence, part, text)) return;
  throw CorruptEvent{"the tags of event " + std::to_string(sequence) +
                     " don't match their checksum; restore them from a backup"};
}

void read_tags(Connection& connection, std::int64_t sequence, std::string& text) {
  text.clear();
  auto parts = connection.rows(sql::tags_of_event{.sequence = sequence});
  while (parts.step()) {
    check_tags(sequence, parts.part(), parts.tags(), parts.checksum());
    if (!text.empty()) text += ' ';
    text += parts.tags();
  }
}

}  // namespace stela::sqlite
