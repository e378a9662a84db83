// The check of tags: each is as it was stored, the index leads to it, and none is missing that
// every event of a type has.
#include "sqlite/event_rows.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/tag_guard.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite_sql/inspection.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace stela::sqlite {
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
  explicit TagsCheck(FileInspection& inspection) : inspection_{inspection} {}

  void run() {
    const bool begun = inspection_.read([&](Connection& connection) {
      bound_ = last_sequence(connection);
      check_facts(connection);
    });
    bool more = begun;
    while (more) {
      more = false;
      if (!inspection_.read([&](Connection& connection) { more = read_page(connection); })) return;
      inspection_.progress(found_, found_);
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
    if (!connection.integer("SELECT epoch FROM tag_epoch")) {
      inspection_.report("table tag_epoch", "its row is missing");
    }
  }

  bool read_page(Connection& connection) {
    auto rows = connection.rows(
        sql::inspect_tags{.sequence = sequence_, .part = part_, .limit = tag_page_rows});
    std::int64_t seen = 0;
    while (rows.step()) {
      if (std::pair{rows.sequence(), rows.part()} <= std::pair{sequence_, part_}) {
        inspection_.report("table event_tags", "rows are out of order");
        return false;
      }
      const bool is_next = rows.sequence() != sequence_;
      if (is_next) hashes_.clear();
      const std::int64_t expected = is_next ? 0 : part_ + 1;
      sequence_ = rows.sequence();
      part_ = rows.part();
      if (sequence_ <= bound_ && part_ != expected) {
        inspection_.report(tags_of(sequence_), "part " + std::to_string(expected) + " is missing");
      }
      if (sequence_ <= bound_) look_at(rows, connection);
      ++seen;
    }
    return seen == tag_page_rows;
  }

  void look_at(const sql::inspect_tags::Row& row, Connection& connection) {
    ++found_;
    const std::string where = tags_of(sequence_);
    if (!row.kind()) return inspection_.report(where, "the event is missing");
    if (row.checksum() != checksum_of_tags(sequence_, part_, row.tags())) {
      damaged_.insert(sequence_);
      return inspection_.report(where, "they don't match their checksum");
    }
    split_tags(row.tags(), [&](std::string_view tag) {
      const std::int64_t hash = hash_of_tag(tag);
      if (hashes_.insert(hash).second) ++entries_;
      auto place = connection.rows(sql::inspect_tag_place{.tag = hash, .sequence = sequence_});
      if (!place.step()) {
        inspection_.report(where, "the index doesn't lead to '" + std::string{tag} + "'",
                           std::string{tag_index_advice});
      } else if (place.kind() != *row.kind()) {
        inspection_.report(where, "the index has another kind for '" + std::string{tag} + "'",
                           std::string{tag_index_advice});
      }
    });
  }

  bool has_extra_entries(Connection& connection) const {
    auto row = connection.rows(sql::inspect_tag_index{.to = bound_});
    row.step();
    return row.entries() > entries_;
  }

  /// Names the entries whose events don't have their tags.
  void walk_index() {
    std::int64_t tag = std::numeric_limits<std::int64_t>::min();
    std::int64_t sequence = std::numeric_limits<std::int64_t>::min();
    bool more = true;
    while (more) {
      const bool was_read = inspection_.read([&](Connection& connection) {
        auto rows = connection.rows(
            sql::inspect_tag_entries{.tag = tag, .sequence = sequence, .limit = tag_page_rows});
        more = false;
        while (rows.step()) {
          if (std::pair{rows.tag(), rows.sequence()} <= std::pair{tag, sequence}) {
            return inspection_.report("table tag_index", "entries are out of order");
          }
          tag = rows.tag();
          sequence = rows.sequence();
          more = true;
          check_entry(connection, tag, sequence);
        }
      });
      if (!was_read) return;
    }
  }

  void check_entry(Connection& connection, std::int64_t tag, std::int64_t sequence) {
    if (sequence > bound_ || damaged_.contains(sequence)) return;
    bool has = false;
    auto parts = connection.rows(sql::tags_of_event{.sequence = sequence});
    while (parts.step()) {
      split_tags(parts.tags(), [&](std::string_view one) { has = has || hash_of_tag(one) == tag; });
    }
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
        auto next = connection.rows(sql::inspect_next_event{.from = to + 1});
        if (!next.step()) return;
        const std::int64_t from = next.sequence();
        to = bound_ - from < page_events ? bound_ : from + page_events - 1;
        more = true;
        check_events(connection, from, to);
      });
      if (!was_read) return;
    }
  }

  void check_events(Connection& connection, std::int64_t from, std::int64_t to) {
    auto rows = connection.rows(sql::inspect_untagged{.from = from, .to = to});
    while (rows.step()) {
      if (damaged_.contains(rows.sequence())) continue;
      inspection_.report(tags_of(rows.sequence()), "every event of its type has one of category '" +
                                                       std::string{rows.category()} +
                                                       "', and it has none");
    }
  }

  FileInspection& inspection_;
  std::int64_t bound_ = 0;
  std::int64_t sequence_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t part_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t found_ = 0;
  std::int64_t entries_ = 0;
  /// Events whose tags don't match their checksum.
  std::set<std::int64_t> damaged_;
  /// Of the tags of the event so far: two may have the same.
  std::set<std::int64_t> hashes_;
};

}  // namespace

void check_tags(FileInspection& inspection) {
  TagsCheck{inspection}.run();
}

}  // namespace stela::sqlite
