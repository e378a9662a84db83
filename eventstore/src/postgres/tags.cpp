#include "postgres/tags.hpp"

#include "database/checksum.hpp"
#include "database/storable_text.hpp"
#include "ledger/cursor.hpp"
#include "postgres/answer.hpp"
#include "postgres/checksums.hpp"
#include "postgres/core.hpp"
#include "postgres/pages.hpp"
#include "postgres/transaction.hpp"

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

void add_or_null(Array& array, const std::string& text) {
  if (text.empty()) {
    array.add_null();
  } else {
    array.add_bytes(text);
  }
}

struct TagPart {
  std::int64_t number = 0;
  std::int64_t checksum = 0;
  std::string_view tags;
};

/// CorruptEvent if it isn't what was stored.
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

void add_query_items(const Query& query, Array& types, Array& tags, Array& hashes) {
  for (const QueryItem& item : query.items) {
    add_or_null(types, joined(item.types, [](const std::string& type) { return type; }));
    add_or_null(tags, joined(item.tags, [](const Tag& tag) { return tag.name(); }));
    hashes.add(item.tags.empty() ? 0 : hash_of_tag(item.tags.front().name()));
  }
}

std::map<std::int64_t, std::string> read_tags(Connection& connection, Array& sequences) {
  std::map<std::int64_t, std::string> all;
  Parameters parameters;
  parameters.add(sequences);
  const Result rows = connection.query(
      "SELECT sequence, part, tags, checksum FROM stela.event_tags WHERE sequence = ANY ($1) "
      "ORDER BY sequence, part",
      std::move(parameters), "reading tags");
  for (int row = 0; row < rows.rows(); ++row) {
    const std::int64_t sequence = rows.integer(row, 0);
    add_part({rows.integer(row, 1), rows.integer(row, 3), rows.bytes(row, 2)}, sequence,
             all[sequence]);
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
  const Result rows = connection.query(
      "SELECT type, category, always, several, since FROM stela.tag_types ORDER BY type, category",
      {}, "reading which types carry which tags");
  for (int row = 0; row < rows.rows(); ++row) {
    facts.add({std::string{rows.bytes(row, 0)}, std::string{rows.bytes(row, 1)},
               rows.integer(row, 2) != 0, rows.integer(row, 3) != 0, rows.integer(row, 4)});
  }
  return facts;
}

PersonalTypes read_personal_types(Connection& connection) {
  PersonalTypes all;
  const Result rows = connection.query("SELECT type FROM stela.stela_personal_types", {},
                                       "reading which types have personal fields");
  for (int row = 0; row < rows.rows(); ++row) all.emplace(rows.bytes(row, 0));
  return all;
}

void add_personal_types(Connection& connection, const PersonalTypes& types) {
  for (const std::string& type : types) {
    Parameters parameters;
    parameters.add(std::string_view{type});
    connection.query(
        "INSERT INTO stela.stela_personal_types (type) VALUES ($1) ON CONFLICT (type) DO NOTHING",
        std::move(parameters), "noting a type with personal fields");
  }
  connection.query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()", {},
                   "noting a type with personal fields");
}

void declare_tags(Connection& connection, std::span<const TagFact> additions) {
  for (const TagFact& fact : additions) {
    Parameters parameters;
    parameters.add(std::string_view{fact.type}).add(std::string_view{fact.category});
    Array flags = Array::of_bool();
    flags.add_bool(fact.always);
    flags.add_bool(fact.several);
    parameters.add(flags);
    connection.query("SELECT stela.declare_tag($1, $2, ($3::boolean[])[1], ($3::boolean[])[2])",
                     std::move(parameters), "noting the tags of a type");
  }
}

void check_needs(Connection& connection, std::span<const TagNeed> needs) {
  for (const TagNeed& need : needs) {
    Parameters parameters;
    Array several = Array::of_bool();
    several.add_bool(need.is_of_several());
    parameters.add(need.type).add(need.category).add(several);
    const Result lacks = connection.query("SELECT stela.lacks_tags($1, $2, ($3::boolean[])[1])",
                                          std::move(parameters), "looking for events without tags");
    if (lacks.integer(0, 0) != 0) throw_tags_missing(need);
  }
}

Standpoint read_standpoint(Connection& connection) {
  const Result row = connection.query(
      "SELECT (SELECT coalesce(max(sequence), 0) FROM stela.events), "
      "(SELECT epoch FROM stela.tag_epoch)",
      {}, "reading the head");
  return {GlobalSequence{row.integer(0, 0)}, row.integer(0, 1)};
}

namespace {

std::optional<AppendResult> find_append_id(Connection& connection, std::string_view append_id) {
  // There is none, and the server fails if it is asked.
  if (!database::is_storable(append_id)) return std::nullopt;
  Parameters parameters;
  parameters.add(append_id);
  const Result found = connection.query(
      "SELECT first_sequence, last_sequence, checksum FROM stela.append_ids WHERE append_id = $1",
      std::move(parameters), "looking up an append id");
  if (found.rows() == 0) return std::nullopt;
  return append_of({append_id, found.integer(0, 0), found.integer(0, 1), found.integer(0, 2)});
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
  // One without events comes after an event that nobody knows: only another flush covers it.
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

/// The hashes of the next tags, each with its first event: a leap in the index for each.
std::vector<std::pair<std::int64_t, std::int64_t>> next_tags(Connection& connection,
                                                             std::int64_t from,
                                                             std::int64_t limit) {
  Parameters parameters;
  parameters.add(from).add(limit);
  const Result rows = connection.query(
      "WITH RECURSIVE next (tag, sequence) AS ("
      "(SELECT i.tag, i.sequence FROM stela.tag_index AS i WHERE i.tag >= $1 "
      "ORDER BY i.tag, i.sequence LIMIT 1) UNION ALL "
      "SELECT n.tag, n.sequence FROM next AS l CROSS JOIN LATERAL ("
      "SELECT i.tag, i.sequence FROM stela.tag_index AS i WHERE i.tag > l.tag "
      "ORDER BY i.tag, i.sequence LIMIT 1) AS n) SELECT tag, sequence FROM next LIMIT $2",
      std::move(parameters), "listing tags");
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (int row = 0; row < rows.rows(); ++row) {
    found.emplace_back(rows.integer(row, 0), rows.integer(row, 1));
  }
  return found;
}

}  // namespace

// --- the store

EventRange Core::read(const stela::Query& query, const QueryRange& range) {
  check_query(query);
  return ledger::read_query(make_pages(*this, kinds_), query, range);
}

Standpoint Core::standpoint(std::span<const TagNeed> needs) {
  // Once they are known to be met in this epoch, that is all there is to ask.
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
    // Once they are known to be there in this epoch, that is all there is to ask.
    standpoint(question.needs);
  }
}

TagCatalogue Core::tag_catalogue() {
  TagCatalogue catalogue;
  read_durably(*this, [&](Connection& connection) {
    catalogue.types = read_tag_facts(connection).list();
    catalogue.has_tags =
        connection.query("SELECT 1 FROM stela.event_tags LIMIT 1", {}, "looking for tags").rows() >
        0;
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
      found = next_tags(connection, from, limit);
      std::int64_t newest = 0;
      Array sequences = Array::of_int8();
      for (const auto& [hash, sequence] : found) {
        sequences.add(sequence);
        newest = std::max(newest, sequence);
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

/// Adds what the event lacks as its next part; false if that is nothing.
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
  Parameters asked;
  asked.add(sequence);
  const std::int64_t part =
      connection
          .query("SELECT coalesce(max(part), -1) + 1 FROM stela.event_tags WHERE sequence = $1",
                 std::move(asked), "adding tags")
          .integer(0, 0);
  Parameters row;
  row.add(sequence).add(part).add(std::string_view{text}).add(tags_checksum(text, sequence, part));
  connection.query(
      "INSERT INTO stela.event_tags (sequence, part, tags, checksum) VALUES ($1, $2, $3, $4)",
      std::move(row), "adding tags");
  split_tags(text, [&](std::string_view tag) {
    Parameters entry;
    entry.add(hash_of_tag(tag)).add(sequence);
    connection.query(
        "INSERT INTO stela.tag_index (tag, sequence, kind) "
        "SELECT $1, e.sequence, e.kind FROM stela.events AS e WHERE e.sequence = $2 "
        "ON CONFLICT DO NOTHING",
        std::move(entry), "adding tags");
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
      Parameters parameters;
      parameters.add(need.type).add(need.category);
      connection.query("UPDATE stela.tag_types SET since = 0 WHERE type = $1 AND category = $2",
                       std::move(parameters), "completing tags");
    }
    connection.query("UPDATE stela.tag_epoch SET epoch = epoch + 1");
  });
}

bool Core::forget_tags(std::string_view type, std::string_view category) {
  bool was_known = false;
  writer_.run_statements([&](Connection& connection) {
    Parameters parameters;
    parameters.add(type).add(category);
    was_known = connection
                    .query(
                        "DELETE FROM stela.tag_types WHERE type = $1 AND category = $2 "
                        "RETURNING 1",
                        std::move(parameters), "forgetting tags")
                    .rows() > 0;
    connection.query("UPDATE stela.tag_epoch SET epoch = epoch + 1");
    connection.query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
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
  // With the order lock: nothing comes after the standpoint before the views are read.
  DecisionAnswer answer = EventLog::answer(question);
  if (answer.appended || !is_answerable(question)) return answer;
  const GlobalSequence up_to = std::min(question.up_to, answer.standpoint.head);
  DecisionAnswer read =
      postgres::answer(*this, writer_.kinds(), {.parts = question.parts, .up_to = up_to});
  read.standpoint = std::move(answer.standpoint);
  return read;
}

}  // namespace stela::postgres
