// The check of tags: each is as it was stored, and the index leads to it.
#include "postgres/checksums.hpp"
#include "postgres/inspection.hpp"
#include "postgres/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <limits>
#include <set>
#include <string>
#include <utility>

namespace stela::postgres {
namespace {

constexpr std::int64_t page_rows = 512;

constexpr std::string_view index_advice =
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
    int rows = begun ? page_rows : 0;
    while (rows == page_rows) {
      if (!inspection_.read([&](Connection& connection) { rows = read_page(connection); })) return;
      inspection_.progress(found_, found_);
    }
    inspection_.read([&](Connection& connection) { count_index(connection); });
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
    parameters.add(sequence_).add(part_).add(bound_).add(page_rows);
    const Result rows = connection.query(
        "SELECT t.sequence, t.part, t.tags, t.checksum, e.kind FROM stela.event_tags AS t "
        "LEFT JOIN stela.events AS e ON e.sequence = t.sequence "
        "WHERE (t.sequence, t.part) > ($1, $2) AND t.sequence <= $3 "
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
    if (sequence != sequence_) hashes_.clear();
    sequence_ = sequence;
    part_ = rows.integer(row, 1);
    ++found_;
    if (rows.is_null(row, 4)) {
      is_damaged_ = true;
      return inspection_.report(tags_of(sequence), "the event is missing");
    }
    if (rows.integer(row, 3) != tags_checksum(rows.bytes(row, 2), sequence, part_)) {
      is_damaged_ = true;
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
                         std::string{index_advice});
    }
  }

  void count_index(Connection& connection) {
    Parameters parameters;
    parameters.add(bound_);
    const Result rows =
        connection.query("SELECT count(*) FROM stela.tag_index WHERE sequence <= $1",
                         std::move(parameters), "counting the index of tags");
    if (is_damaged_ || rows.integer(0, 0) <= entries_) return;
    inspection_.report("table tag_index", "it has " + std::to_string(rows.integer(0, 0)) +
                                              " entries, and the tags of events make " +
                                              std::to_string(entries_));
  }

  ServerInspection& inspection_;
  std::int64_t bound_ = 0;
  std::int64_t sequence_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t part_ = std::numeric_limits<std::int32_t>::min();
  std::int64_t found_ = 0;
  std::int64_t entries_ = 0;
  bool is_damaged_ = false;
  /// Of the tags of the event so far: two may have the same.
  std::set<std::int64_t> hashes_;
};

}  // namespace

void check_tags(ServerInspection& inspection) {
  TagsCheck{inspection}.run();
}

}  // namespace stela::postgres
