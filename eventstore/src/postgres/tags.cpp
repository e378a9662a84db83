#include "postgres/tags.hpp"

#include "database/checksum.hpp"
#include "database/storable_text.hpp"
#include "ledger/cursor.hpp"
#include "postgres/checksums.hpp"
#include "postgres/core.hpp"
#include "postgres/decision_answer.hpp"
#include "postgres/pages.hpp"
#include "postgres/transaction.hpp"
#include "postgres_sql/participants.hpp"
#include "postgres_sql/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

namespace stela::postgres {

namespace {

template <class List, class Text>
std::string joined(const List& list, Text text) {
  std::string all;
  for (const auto& one : list) {
    if (!all.empty()) all += ' ';
    all += text(one);
  }
  return all;
}

struct TagPart {
  std::int64_t number = 0;
  std::int64_t checksum = 0;
  std::string_view tags;
};

/// CorruptEvent if it doesn't match its checksum.
void add_part(const TagPart& part, std::int64_t sequence, std::string& text) {
  if (part.checksum != tags_checksum(part.tags, sequence, part.number)) {
    throw CorruptEvent{"the tags of event " + std::to_string(sequence) +
                       " don't match their checksum; restore them from a backup"};
  }
  if (!text.empty()) text += ' ';
  text += part.tags;
}

}  // namespace

std::int64_t hash_of_tag(std::string_view tag) noexcept {
  return static_cast<std::int64_t>(database::text_checksum(tag));
}

void add_query_items(const Query& query, sql::item_rows& items) {
  for (const QueryItem& item : query.items) {
    const std::string types = joined(item.types, [](const std::string& type) { return type; });
    const std::string tags = joined(item.tags, [](const Tag& tag) { return tag.name(); });
    items.add({.types = database::or_null(types),
               .tags = database::or_null(tags),
               .hash = item.tags.empty() ? 0 : hash_of_tag(item.tags.front().name())});
  }
}

std::map<std::int64_t, std::string> read_tags(Connection& connection, Array& sequences) {
  std::map<std::int64_t, std::string> all;
  auto rows = connection.rows(sql::tags_of{.sequences = sequences});
  while (rows.step()) {
    add_part({rows.part(), rows.checksum(), rows.tags()}, rows.sequence(), all[rows.sequence()]);
  }
  return all;
}

std::string join_tag_parts(std::string_view lines, std::int64_t sequence) {
  std::string text;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const char* const end = line.data() + line.size();
    TagPart part;
    const char* at = line.data();
    for (std::int64_t* const number : {&part.number, &part.checksum}) {
      at = std::from_chars(at, end, *number).ptr;
      if (at != end) ++at;
    }
    part.tags = {at, static_cast<std::size_t>(end - at)};
    add_part(part, sequence, text);
  }
  return text;
}

TagFacts read_tag_facts(Connection& connection) {
  TagFacts facts;
  auto rows = connection.rows(sql::tag_types{});
  while (rows.step()) {
    facts.add({std::string{rows.type()}, std::string{rows.category()}, rows.always(),
               rows.several(), rows.since()});
  }
  return facts;
}

PersonalTypes read_personal_types(Connection& connection) {
  PersonalTypes all;
  auto rows = connection.rows(sql::personal_types{});
  while (rows.step()) all.emplace(rows.type());
  return all;
}

void add_personal_types(Connection& connection, const PersonalTypes& types) {
  for (const std::string& type : types) connection.run(sql::add_personal_type{.type = type});
  connection.run(sql::change_epoch{}, sql::add_personal_type::doing);
}

void declare_tags(Connection& connection, std::span<const TagFact> additions) {
  for (const TagFact& fact : additions) {
    connection.run(sql::declare_tag{.type = fact.type,
                                    .category = fact.category,
                                    .always = fact.always,
                                    .several = fact.several});
  }
}

void check_needs(Connection& connection, std::span<const TagNeed> needs) {
  for (const TagNeed& need : needs) {
    const sql::lacks_tags question{
        .type = need.type, .category = need.category, .several = need.is_of_several()};
    if (connection.row(question).lacks()) throw_tags_missing(need);
  }
}

Standpoint read_standpoint(Connection& connection) {
  const auto row = connection.row(sql::standpoint{});
  return {GlobalSequence{row.head()}, row.tag_epoch()};
}

namespace {

std::optional<AppendResult> find_append_id(Connection& connection, std::string_view append_id) {
  // No such id exists, and the server would fail on it.
  if (!database::is_storable(append_id)) return std::nullopt;
  auto found = connection.rows(sql::find_append_id{.append_id = append_id});
  if (!found.step()) return std::nullopt;
  return append_of({append_id, found.first_sequence(), found.last_sequence(), found.checksum()});
}

}  // namespace

AppendResult append_of(const AppendRow& row) {
  if (row.checksum != id_checksum(row.id, row.first, row.last)) {
    throw CorruptEvent{"append id '" + std::string{row.id} +
                       "' doesn't match its checksum; restore it from a backup"};
  }
  return {.first = GlobalSequence{row.first}, .last = GlobalSequence{row.last}, .repeated = true};
}

std::int64_t sequence_of_append(const AppendResult& append) noexcept {
  // An append without events follows an unknown event, so only another flush covers it.
  return append.last.value() > 0 ? append.last.value() : GlobalSequence::max().value();
}

std::optional<AppendResult> find_append(Reading& reading, std::string_view append_id) {
  std::optional<AppendResult> found;
  read_durably(reading, [&](Connection& connection) -> std::int64_t {
    found = find_append_id(connection, append_id);
    return found ? sequence_of_append(*found) : 0;
  });
  return found;
}

namespace {

constexpr std::int64_t first_listed_tags = 128;
constexpr std::int64_t most_listed_tags = 1024;

}  // namespace

// --- the store

EventRange Core::read(const stela::Query& query, const QueryRange& range) {
  check_query(query);
  return ledger::read_query(make_pages(*this, kinds_), query, range);
}

Standpoint Core::standpoint(std::span<const TagNeed> needs) {
  // Once the needs are known to be met in this epoch, one read is enough.
  for (;;) {
    Standpoint now;
    read_durably(*this, [&](Connection& connection) {
      now = read_standpoint(connection);
      return now.head.value();
    });
    if (needs.empty() || coverage_.has(needs, now.tag_epoch)) {
      now.store = conventions_.store;
      return now;
    }
    if (options_.read_only) {
      read_durably(*this, [&](Connection& connection) {
        check_needs(connection, needs);
        return std::int64_t{0};
      });
    } else {
      writer_.declare_tags(needs, [&](Connection& connection) { check_needs(connection, needs); });
    }
    coverage_.add(needs, now.tag_epoch);
  }
}

std::optional<AppendResult> Core::find_append(std::string_view append_id) {
  return postgres::find_append(*this, append_id);
}

DecisionAnswer Core::answer(const DecisionQuestion& question) {
  if (!is_answerable(question)) return EventLog::answer(question);
  for (;;) {
    DecisionAnswer answer = postgres::answer(*this, kinds_, question);
    answer.standpoint.store = conventions_.store;
    const bool has_tags =
        question.needs.empty() || coverage_.has(question.needs, answer.standpoint.tag_epoch);
    if (answer.appended || has_tags) return answer;
    // Once the tags are known to exist in this epoch, one question is enough.
    standpoint(question.needs);
  }
}

TagCatalogue Core::tag_catalogue() {
  TagCatalogue catalogue;
  read_durably(*this, [&](Connection& connection) {
    catalogue.types = read_tag_facts(connection).list();
    catalogue.has_tags = connection.run(sql::has_tags{}) > 0;
    return std::int64_t{0};
  });
  return catalogue;
}

void Core::for_each_tag(std::string_view after,
                        FunctionRef<bool(std::string_view, GlobalSequence)> f) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  if (!after.empty()) from = hash_of_tag(after);
  bool goes_on = after.empty() || from++ != last;
  for (std::int64_t limit = first_listed_tags; goes_on; limit = most_listed_tags) {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    std::map<std::int64_t, std::string> tags;
    read_durably(*this, [&](Connection& connection) {
      found.clear();
      std::int64_t newest = 0;
      Array sequences = Array::of_int8();
      auto rows = connection.rows(sql::next_tags{.from = from, .limit = limit});
      while (rows.step()) {
        found.emplace_back(rows.tag(), rows.sequence());
        sequences.add(rows.sequence());
        newest = std::max(newest, rows.sequence());
      }
      tags = read_tags(connection, sequences);
      return newest;
    });
    for (const auto& place : found) {
      split_tags(tags[place.second], [&](std::string_view tag) {
        if (hash_of_tag(tag) != place.first) return;
        goes_on = goes_on && f(tag, GlobalSequence{place.second});
      });
      from = place.first;
    }
    goes_on = goes_on && static_cast<std::int64_t>(found.size()) == limit && from++ != last;
  }
}

void Core::declare_tags(std::span<const TagNeed> needs) {
  writer_.declare_tags(needs);
}

namespace {

/// Adds the event's missing tags as its next part; false if none are missing.
bool add_tags(Connection& connection, const TagsOfEvent& event) {
  const std::int64_t sequence = event.sequence.value();
  Array one = Array::of_int8();
  one.add(sequence);
  const std::string present = read_tags(connection, one)[sequence];
  std::vector<Tag> missing;
  for (const Tag& tag : event.tags) {
    bool has = false;
    split_tags(present, [&](std::string_view known) { has = has || known == tag.name(); });
    if (!has) missing.push_back(tag);
  }
  const std::string text = join_tags(missing, event.stream);
  if (text.empty()) return false;
  const std::int64_t part = connection.row(sql::next_part{.sequence = sequence}).part();
  connection.run(sql::add_part{.sequence = sequence,
                               .part = part,
                               .tags = text,
                               .checksum = tags_checksum(text, sequence, part)});
  split_tags(text, [&](std::string_view tag) {
    connection.run(sql::index_tag{.tag = hash_of_tag(tag), .sequence = sequence});
  });
  return true;
}

}  // namespace

std::int64_t Core::write_tags(std::span<const TagsOfEvent> events) {
  std::int64_t tagged = 0;
  writer_.run_statements([&](Connection& connection) {
    tagged = 0;
    for (const TagsOfEvent& event : events) tagged += add_tags(connection, event) ? 1 : 0;
  });
  return tagged;
}

void Core::complete_tags(std::span<const TagNeed> needs) {
  writer_.run_statements([&](Connection& connection) {
    for (const TagNeed& need : needs) {
      connection.run(sql::complete_tag_type{.type = need.type, .category = need.category});
    }
    connection.run(sql::change_tag_epoch{});
  });
}

bool Core::forget_tags(std::string_view type, std::string_view category) {
  bool was_known = false;
  writer_.run_statements([&](Connection& connection) {
    was_known = connection.run(sql::forget_tag_type{.type = type, .category = category}) > 0;
    connection.run(sql::change_tag_epoch{});
    connection.run(sql::change_epoch{});
  });
  return was_known;
}

// --- its transactions

EventRange UserTransaction::read(const stela::Query& query, const QueryRange& range) {
  check_query(query);
  return ledger::read_query(make_pages(*this, writer_.kinds()), query, range);
}

Standpoint UserTransaction::standpoint(std::span<const TagNeed> needs) {
  Standpoint now;
  writer_.run_inside(work_, [&] {
    if (writer_.settle_tags(connection(), needs)) work_.outcomes.note_tags();
    check_needs(connection(), needs);
    now = read_standpoint(connection());
  });
  now.outcome = work_.outcomes.of_position(now.head);
  now.store = conventions().store;
  return now;
}

std::optional<AppendResult> UserTransaction::find_append(std::string_view append_id) {
  return postgres::find_append(*this, append_id);
}

DecisionAnswer UserTransaction::answer(const DecisionQuestion& question) {
  // Under the order lock, no event comes between the standpoint and the views.
  DecisionAnswer answer = EventLog::answer(question);
  if (answer.appended || !is_answerable(question)) return answer;
  const GlobalSequence up_to = std::min(question.up_to, answer.standpoint.head);
  DecisionAnswer read =
      postgres::answer(*this, writer_.kinds(), {.parts = question.parts, .up_to = up_to});
  read.standpoint = std::move(answer.standpoint);
  return read;
}

}  // namespace stela::postgres
