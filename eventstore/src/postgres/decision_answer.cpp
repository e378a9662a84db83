#include "postgres/decision_answer.hpp"

#include "database/storable_text.hpp"
#include "postgres/event_rows.hpp"
#include "postgres/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stela::postgres {
namespace {

constexpr std::size_t most_parts = 64;
/// The most rows of one part, and of all parts. Views with more events, or with large payloads, are
/// read page by page.
constexpr std::int64_t rows_of_part = 128;
constexpr std::int64_t rows_of_answer = 512;

/// The columns after an event's own, which end with its stream's name.
namespace answered {
enum Column : int { head = 16, epoch, first_sequence, last_sequence, id_checksum, part, tags };
}  // namespace answered

/// Gives one row without an event if none matches. Looks up the events one by one: the planner
/// overestimates a function's rows, and would scan the whole table for a join.
std::string answer_sql(bool with_tags) {
  std::string sql{
      "WITH h AS MATERIALIZED (SELECT (SELECT coalesce(max(sequence), 0) FROM stela.events) AS "
      "head, (SELECT epoch FROM stela.tag_epoch) AS epoch) "};
  sql += quick_columns();
  sql +=
      ", (SELECT t.name FROM stela.streams AS t WHERE t.stream = p.stream), h.head, h.epoch, "
      "a.first_sequence, a.last_sequence, a.checksum, p.part";
  if (with_tags) {
    sql +=
        ", (SELECT string_agg(g.part || ' ' || g.checksum || ' ' || g.tags, E'\\n' ORDER BY "
        "g.part) FROM stela.event_tags AS g WHERE g.sequence = p.sequence)";
  }
  return sql +
         " FROM h LEFT JOIN stela.append_ids AS a ON a.append_id = $1 "
         "LEFT JOIN LATERAL (SELECT i.part, e.* FROM unnest($2::text[], $3::text[], $4::bigint[], "
         "$5::boolean[], $6::bigint[]) WITH ORDINALITY AS i(types, tags, hash, is_backward, most, "
         "part) CROSS JOIN LATERAL (SELECT f.s FROM stela.matching(i.types, i.tags, i.hash, 0, "
         "least($7, h.head), i.is_backward, i.most) AS f(s) GROUP BY f.s ORDER BY CASE WHEN "
         "i.is_backward THEN -f.s ELSE f.s END LIMIT i.most) AS m CROSS JOIN LATERAL (SELECT o.* "
         "FROM stela.events AS o WHERE o.sequence = m.s LIMIT 1) AS e WHERE a.append_id IS NULL "
         "ORDER BY i.part, e.sequence LIMIT $8) AS p ON true "
         "LEFT JOIN stela.event_kinds AS k ON k.kind = p.kind ORDER BY p.part, p.sequence";
}

Result ask(Connection& connection, const DecisionQuestion& question, const Query& query) {
  static const std::string with_tags = answer_sql(true);
  static const std::string without_tags = answer_sql(false);
  sql::item_rows items;
  add_query_items(query, items);
  Array is_backward = Array::of_bool();
  Array most = Array::of_int8();
  for (const DecisionQuestion::Part& one : question.parts) {
    is_backward.add_bool(one.last_only);
    most.add(one.last_only ? 1 : rows_of_part);
  }
  Parameters parameters;
  // The server refuses an id that it can't store.
  if (question.append_id.empty() || !database::is_storable(question.append_id)) {
    parameters.add_null(type::text);
  } else {
    parameters.add(question.append_id);
  }
  items.add_to(parameters);
  parameters.add(is_backward).add(most).add(question.up_to.value()).add(rows_of_answer);
  const bool wants_tags = std::any_of(question.parts.begin(), question.parts.end(),
                                      [](const auto& one) { return one.with_tags; });
  return connection.query(wants_tags ? with_tags : without_tags, std::move(parameters),
                          "reading for a decision");
}

/// The events of an answer, page by page although all are in memory: a damaged event is reported
/// only when it is reached.
class AnswerCursor final : public EventCursor {
 public:
  AnswerCursor(KindTable& kinds, std::shared_ptr<const Result> found, std::vector<int> rows)
      : kinds_{kinds}, found_{std::move(found)}, rows_{std::move(rows)} {}

  std::span<const StoredEvent> next_page() override {
    page_.clear();
    EventRows reader{kinds_, names_};
    const bool has_tags = found_->columns() > answered::tags;
    for (; next_ < rows_.size(); ++next_) {
      const int row = rows_[next_];
      try {
        if (has_tags) take_tags(row);
        reader.tags = has_tags ? &tags_ : nullptr;
        if (!page_.add(reader.read(*found_, row))) break;
      } catch (const Error&) {
        if (page_.empty()) throw;
        break;
      }
    }
    return page_.events();
  }

 private:
  void take_tags(int row) {
    const std::int64_t sequence = EventRows::sequence_of(*found_, row);
    tags_.clear();
    if (found_->is_null(row, answered::tags)) return;
    tags_[sequence] = join_tag_parts(found_->bytes(row, answered::tags), sequence);
  }

  KindTable& kinds_;
  const std::shared_ptr<const Result> found_;
  const std::vector<int> rows_;
  std::size_t next_ = 0;
  StreamNames names_;
  EventPage page_;
  std::map<std::int64_t, std::string> tags_;
};

/// Returns the rows with events. Sets how many each part has, and whether those are all.
std::vector<int> sort_out(const Result& found, const DecisionQuestion& question,
                          std::vector<DecisionAnswer::Part>& parts) {
  std::vector<int> rows;
  std::vector<std::int64_t> seen(question.parts.size());
  std::vector<bool> is_cut(question.parts.size());
  const bool has_events = !found.is_null(0, answered::part);
  for (int row = 0; has_events && row < found.rows(); ++row) {
    const auto at = static_cast<std::size_t>(found.integer(row, answered::part) - 1);
    ++seen[at];
    is_cut[at] = is_cut[at] || EventRows::is_left_out(found, row);
    if (is_cut[at]) continue;
    ++parts[at].events;
    rows.push_back(row);
  }
  // If the answer is full, the part of its last event and the later parts may have lacked room.
  const std::size_t room_until =
      has_events && found.rows() >= rows_of_answer
          ? static_cast<std::size_t>(found.integer(found.rows() - 1, answered::part) - 1)
          : parts.size();
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const bool has_all = question.parts[at].last_only || seen[at] < rows_of_part;
    parts[at].is_complete = has_all && !is_cut[at] && at < room_until;
  }
  return rows;
}

}  // namespace

bool is_answerable(const DecisionQuestion& question) noexcept {
  return question.parts.size() <= most_parts;
}

DecisionAnswer answer(Reading& reading, KindTable& kinds, const DecisionQuestion& question) {
  Query query;
  for (const DecisionQuestion::Part& one : question.parts) query.items.push_back(*one.item);
  if (!query.items.empty()) check_query(query);
  std::shared_ptr<const Result> found;
  DecisionAnswer given;
  read_durably(reading, [&](Connection& connection) {
    found = std::make_shared<const Result>(ask(connection, question, query));
    given.appended.reset();
    if (!found->is_null(0, answered::first_sequence)) {
      given.appended = append_of({.id = question.append_id,
                                  .first = found->integer(0, answered::first_sequence),
                                  .last = found->integer(0, answered::last_sequence),
                                  .checksum = found->integer(0, answered::id_checksum)});
      return sequence_of_append(*given.appended);
    }
    return found->integer(0, answered::head);
  });
  if (given.appended) return given;
  given.standpoint = {GlobalSequence{found->integer(0, answered::head)},
                      found->integer(0, answered::epoch)};
  given.parts.resize(question.parts.size());
  std::vector<int> rows = sort_out(*found, question, given.parts);
  given.events.emplace(std::make_unique<AnswerCursor>(kinds, std::move(found), std::move(rows)));
  return given;
}

}  // namespace stela::postgres
