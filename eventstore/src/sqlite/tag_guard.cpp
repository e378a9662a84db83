#include "sqlite/tag_guard.hpp"

#include "database/checksum.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/kind_blocks.hpp"
#include "sqlite_sql/kinds.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace stela::sqlite {

std::int64_t checksum_of_fact(const TagFact& fact) {
  return database::checksum_of({fact.always ? 1 : 0, fact.several ? 1 : 0, fact.since},
                               {fact.type, fact.category});
}

TagFacts read_tag_facts(Connection& connection) {
  TagFacts facts;
  auto rows = connection.rows(sql::tag_types{});
  while (rows.step()) {
    TagFact fact{std::string{rows.type()}, std::string{rows.category()}, rows.always(),
                 rows.several(), rows.since()};
    if (rows.checksum() != checksum_of_fact(fact)) {
      throw CorruptEvent{"what the database says of the tags of '" + fact.type +
                         "' doesn't match its checksum; restore it from a backup"};
    }
    facts.add(std::move(fact));
  }
  return facts;
}

void put_tag_fact(Connection& connection, const TagFact& fact) {
  connection.run(sql::put_tag_type{.type = fact.type,
                                   .category = fact.category,
                                   .always = fact.always,
                                   .several = fact.several,
                                   .since = fact.since,
                                   .checksum = checksum_of_fact(fact)});
}

namespace {

bool has_event_before(Connection& connection, std::int64_t kind, std::int64_t sequence) {
  auto blocks = connection.rows(sql::kind_blocks{.kind = kind, .from = 0, .limit = 1});
  if (!blocks.step()) return false;
  const std::int64_t begin = blocks.block() * block_size;
  const std::string kinds = "[" + std::to_string(kind) + "]";
  return connection
      .rows(sql::kind_places{.from = begin,
                             .to = std::min(begin + block_size - 1, sequence - 1),
                             .kinds = kinds,
                             .limit = 1})
      .step();
}

}  // namespace

bool lacks_tags(Connection& connection, const TagFacts& facts, const TagNeed& need) {
  const TagFact* const fact = facts.find(need.type, need.category);
  if (fact != nullptr && fact->since == 0) return false;
  const std::int64_t since =
      fact != nullptr ? fact->since : std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> kinds;
  {
    // Of several tags of a category, at most one is the stream's name.
    const std::string_view answering = need.is_of_several() ? std::string_view{} : need.category;
    auto rows = connection.rows(sql::kinds_outside{.type = need.type, .category = answering});
    while (rows.step()) kinds.push_back(rows.kind());
  }
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](std::int64_t kind) { return has_event_before(connection, kind, since); });
}

const void* TagGuard::identity_of(const NewEvent& event) noexcept {
  static constexpr char unknown = 0;
  static constexpr char none = 0;
  // Tags of an undeclared type are checked each time, if the type carries any.
  if (!event.declared) return &unknown;
  return event.declared->empty() ? &none : static_cast<const void*>(event.declared->data());
}

void TagGuard::forget() noexcept {
  is_known_ = false;
  checked_.clear();
}

TagFacts& TagGuard::facts(Connection& connection) {
  if (is_known_) return facts_;
  facts_ = read_tag_facts(connection);
  personal_types_ = read_personal_types(connection);
  auto row = connection.rows(sql::standpoint{});
  row.step();
  epoch_ = row.epoch();
  is_known_ = true;
  return facts_;
}

std::int64_t TagGuard::epoch(Connection& connection) {
  facts(connection);
  return epoch_;
}

bool TagGuard::settle(Connection& connection, std::string_view type,
                      std::span<const TagDeclaration> declared, std::int64_t next_sequence) {
  std::vector<TagFact> additions = facts(connection).additions(type, declared);
  if (additions.empty()) return false;
  const bool has_events = connection.rows(sql::type_has_events{.type = type}).step();
  has_added_ = true;
  // Other kinds of the type were checked against the older facts.
  checked_.clear();
  for (TagFact& fact : additions) {
    if (fact.since == TagFacts::from_now_on) fact.since = has_events ? next_sequence : 0;
    put_tag_fact(connection, fact);
    facts_.add(std::move(fact));
  }
  return true;
}

bool TagGuard::require(Connection& connection, const TagNeed& need, std::int64_t next_sequence) {
  const bool has_noted = settle(connection, need.type, need.declared, next_sequence);
  if (lacks_tags(connection, facts_, need)) throw_tags_missing(need);
  return has_noted;
}

void TagGuard::note_personal(Connection& connection, std::string_view type) {
  facts(connection);
  if (personal_types_.contains(type)) return;
  has_added_ = true;
  // Appenders that don't declare the type were checked against the older facts.
  checked_.clear();
  add_personal_type(connection, type);
  personal_types_.emplace(type);
}

void TagGuard::look(Connection& connection, std::size_t kind, const NewEvent& event,
                    const StreamId& stream, std::int64_t next_sequence) {
  if (event.declared) {
    settle(connection, event.type, *event.declared, next_sequence);
    if (!event.keys.empty()) note_personal(connection, event.type);
  } else {
    const bool has_tags = facts(connection).knows(event.type);
    if (personal_types_.contains(event.type)) refuse_untyped(event.type);
    if (has_tags) return facts_.check_carries(event, stream);
  }
  if (checked_.size() <= kind) checked_.resize(kind + 1);
  checked_[kind] = {identity_of(event), !event.keys.empty()};
}

}  // namespace stela::sqlite
