// The check of tags: each is as it was stored, the index leads to it, and none is missing that
// every event of a type has.
#include "postgres/checksums.hpp"
#include "postgres/inspection.hpp"
#include "postgres/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace stela::postgres {
namespace {

constexpr std::int64_t tag_page_rows = 512;
constexpr std::int64_t page_events = 8192;

constexpr std::string_view tag_index_advice =
    "the tags are there, but queries may miss them: export the events, and import them into a new "
    "database";

std::string tags_of(std::int64_t sequence) {
  return "the tags of event " + std::to_string(sequence);
}

class TagsCheck {
 public:
  explicit TagsCheck(ServerInspection& inspection) : inspection_{inspection} {}

  void run() {
    const bool begun = inspection_.read([&](Connection& connection) {
      bound_ = last_sequence(connection);
      check_facts(connection);
    });
    int rows = begun ? tag_page_rows : 0;
    while (rows == tag_page_rows) {
      if (!inspection_.read([&](Connection& connection) { rows = read_page(connection); })) return;
      inspection_.progress(rows == tag_page_rows ? sequence_ : bound_, bound_);
    }
    bool has_extra = false;
    inspection_.read([&](Connection& connection) { has_extra = has_extra_entries(connection); });
    if (has_extra) walk_index();
    walk_events();
  }

 private:
  void check_facts(Connection& connection) {
    try {
      (void)read_tag_facts(connection);
    } catch (const CorruptEvent& e) {
      inspection_.report("table tag_types", e.what());
    }
    if (connection.query("SELECT epoch FROM stela.tag_epoch").rows() != 1) {
      inspection_.report("table tag_epoch", "its row is missing");
    }
  }

  int read_page(Connection& connection) {
    Parameters parameters;
    parameters.add(sequence_).add(part_).add(bound_).add(tag_page_rows);
    const Result rows = connection.query(
        // Not by a join, which may read all events before the page.
        "SELECT t.sequence, t.part, t.tags, t.checksum, "
        "(SELECT e.kind FROM stela.events AS e WHERE e.sequence = t.sequence) "
        "FROM stela.event_tags AS t WHERE (t.sequence, t.part) > ($1, $2) AND t.sequence <= $3 "
        "ORDER BY t.sequence, t.part LIMIT $4",
        std::move(parameters), "reading tags");
    Wanted wanted;
    for (int row = 0; row < rows.rows(); ++row) look_at(rows, row, wanted);
    compare_index(connection, wanted);
    return rows.rows();
  }

  /// What the index must have, one element each.
  struct Wanted {
    Array tags = Array::of_text();
    Array hashes = Array::of_int8();
    Array sequences = Array::of_int8();
    Array kinds = Array::of_int8();
  };

  void look_at(const Result& rows, int row, Wanted& wanted) {
    const std::int64_t sequence = rows.integer(row, 0);
    const bool is_next = sequence != sequence_;
    if (is_next) hashes_.clear();
    const std::int64_t expected = is_next ? 0 : part_ + 1;
    sequence_ = sequence;
    part_ = rows.integer(row, 1);
    if (part_ != expected) {
      inspection_.report(tags_of(sequence), "part " + std::to_string(expected) + " is missing");
    }
    if (rows.is_null(row, 4)) {
      damaged_.insert(sequence);
      return inspection_.report(tags_of(sequence), "the event is missing");
    }
    if (rows.integer(row, 3) != tags_checksum(rows.bytes(row, 2), sequence, part_)) {
      damaged_.insert(sequence);
      return inspection_.report(tags_of(sequence), "they don't match their checksum");
    }
    split_tags(rows.bytes(row, 2), [&](std::string_view tag) {
      const std::int64_t hash = hash_of_tag(tag);
      if (!hashes_.insert(hash).second) return;
      ++entries_;
      wanted.tags.add_bytes(tag);
      wanted.hashes.add(hash);
      wanted.sequences.add(sequence);
      wanted.kinds.add(rows.integer(row, 4));
    });
  }

  void compare_index(Connection& connection, Wanted& wanted) {
    Parameters parameters;
    parameters.add(wanted.tags).add(wanted.hashes).add(wanted.sequences).add(wanted.kinds);
    const Result rows = connection.query(
        "SELECT w.sequence, w.tag, i.kind FROM "
        "unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) "
        "AS w (tag, hash, sequence, kind) "
        "LEFT JOIN stela.tag_index AS i ON i.tag = w.hash AND i.sequence = w.sequence "
        "WHERE i.kind IS DISTINCT FROM w.kind ORDER BY w.sequence",
        std::move(parameters), "looking tags up in the index");
    for (int row = 0; row < rows.rows(); ++row) {
      const std::string tag = " '" + std::string{rows.bytes(row, 1)} + '\'';
      inspection_.report(tags_of(rows.integer(row, 0)),
                         rows.is_null(row, 2) ? "the index doesn't lead to" + tag
                                              : "the index has another kind for" + tag,
                         std::string{tag_index_advice});
    }
  }

  bool has_extra_entries(Connection& connection) const {
    Parameters parameters;
    parameters.add(bound_);
    const Result rows =
        connection.query("SELECT count(*) FROM stela.tag_index WHERE sequence <= $1",
                         std::move(parameters), "counting the index of tags");
    return rows.integer(0, 0) > entries_;
  }

  /// Names the entries whose events don't have their tags.
  void walk_index() {
    std::int64_t tag = std::numeric_limits<std::int64_t>::min();
    std::int64_t sequence = std::numeric_limits<std::int64_t>::min();
    bool more = true;
    while (more) {
      const bool was_read = inspection_.read([&](Connection& connection) {
        Parameters parameters;
        parameters.add(tag).add(sequence).add(tag_page_rows);
        const Result rows = connection.query(
            "SELECT i.tag, i.sequence, "
            "(SELECT string_agg(t.tags, ' ') FROM stela.event_tags AS t "
            "WHERE t.sequence = i.sequence) "
            "FROM stela.tag_index AS i WHERE (i.tag, i.sequence) > ($1, $2) "
            "ORDER BY i.tag, i.sequence LIMIT $3",
            std::move(parameters), "reading the index of tags");
        for (int row = 0; row < rows.rows(); ++row) {
          tag = rows.integer(row, 0);
          sequence = rows.integer(row, 1);
          check_entry(tag, sequence,
                      rows.is_null(row, 2) ? std::string_view{} : rows.bytes(row, 2));
        }
        more = rows.rows() == tag_page_rows;
      });
      if (!was_read) return;
    }
  }

  void check_entry(std::int64_t tag, std::int64_t sequence, std::string_view tags) {
    if (sequence > bound_ || damaged_.contains(sequence)) return;
    bool has = false;
    split_tags(tags, [&](std::string_view one) { has = has || hash_of_tag(one) == tag; });
    if (has) return;
    inspection_.report(tags_of(sequence), "the index leads to one that the event doesn't have");
  }

  void walk_events() {
    std::int64_t to = 0;
    bool more = true;
    while (more) {
      more = false;
      const bool was_read = inspection_.read([&](Connection& connection) {
        if (to >= bound_) return;
        // A damaged store may have few events, far from each other.
        Parameters behind;
        behind.add(to);
        const Result next = connection.query(
            "SELECT sequence FROM stela.events WHERE sequence > $1 ORDER BY sequence LIMIT 1",
            std::move(behind), "looking for events without tags");
        if (next.rows() == 0) return;
        const std::int64_t from = next.integer(0, 0);
        to = bound_ - from < page_events ? bound_ : from + page_events - 1;
        more = true;
        check_events(connection, from, to);
      });
      if (!was_read) return;
    }
  }

  void check_events(Connection& connection, std::int64_t from, std::int64_t to) {
    Parameters parameters;
    parameters.add(from).add(to);
    const Result rows = connection.query(
        "SELECT e.sequence, f.category FROM stela.events AS e "
        "JOIN stela.event_kinds AS k ON k.kind = e.kind "
        "JOIN stela.tag_types AS f ON f.type = k.type "
        "WHERE e.sequence BETWEEN $1 AND $2 AND f.always AND e.sequence >= f.since "
        "AND f.category <> k.category "
        "AND NOT EXISTS (SELECT FROM stela.event_tags AS t WHERE t.sequence = e.sequence "
        "AND strpos(' ' || t.tags, ' ' || f.category || '-') > 0) "
        "ORDER BY e.sequence, f.category",
        std::move(parameters), "looking for events without tags");
    for (int row = 0; row < rows.rows(); ++row) {
      const std::int64_t sequence = rows.integer(row, 0);
      if (damaged_.contains(sequence)) continue;
      inspection_.report(tags_of(sequence), "every event of its type has one of category '" +
                                                std::string{rows.bytes(row, 1)} +
                                                "', and it has none");
    }
  }

  ServerInspection& inspection_;
  std::int64_t bound_ = 0;
  std::int64_t sequence_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t part_ = std::numeric_limits<std::int32_t>::min();
  std::int64_t entries_ = 0;
  /// Events that are missing, or whose tags don't match their checksum.
  std::set<std::int64_t> damaged_;
  /// Of the tags of the event so far: two may have the same.
  std::set<std::int64_t> hashes_;
};

}  // namespace

void check_tags(ServerInspection& inspection) {
  TagsCheck{inspection}.run();
}

}  // namespace stela::postgres
