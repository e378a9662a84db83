// The check of tags: each is as it was stored, and the index leads to it.
#include "sqlite/event_rows.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/tag_guard.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite_sql/inspection.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/query.hpp>

#include <limits>
#include <set>
#include <string>
#include <utility>

namespace stela::sqlite {
namespace {

constexpr std::int64_t page_rows = 512;

constexpr std::string_view index_advice =
    "the tags are there, but queries may miss them: export the events, and import them into a new "
    "database";

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
    inspection_.read([&](Connection& connection) { compare_index(connection); });
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
        sql::inspect_tags{.sequence = sequence_, .part = part_, .limit = page_rows});
    std::int64_t seen = 0;
    while (rows.step()) {
      if (std::pair{rows.sequence(), rows.part()} <= std::pair{sequence_, part_}) {
        inspection_.report("table event_tags", "rows are out of order");
        return false;
      }
      if (rows.sequence() != sequence_) hashes_.clear();
      sequence_ = rows.sequence();
      part_ = rows.part();
      if (sequence_ <= bound_) look_at(rows, connection);
      ++seen;
    }
    return seen == page_rows;
  }

  void look_at(const sql::inspect_tags::Row& row, Connection& connection) {
    ++found_;
    const std::string where = "the tags of event " + std::to_string(sequence_);
    if (!row.kind()) return inspection_.report(where, "the event is missing");
    if (row.checksum() != checksum_of_tags(sequence_, part_, row.tags())) {
      is_damaged_ = true;
      return inspection_.report(where, "they don't match their checksum");
    }
    split_tags(row.tags(), [&](std::string_view tag) {
      const std::int64_t hash = hash_of_tag(tag);
      if (hashes_.insert(hash).second) ++entries_;
      auto place = connection.rows(sql::inspect_tag_place{.tag = hash, .sequence = sequence_});
      if (!place.step()) {
        inspection_.report(where, "the index doesn't lead to '" + std::string{tag} + "'",
                           std::string{index_advice});
      } else if (place.kind() != *row.kind()) {
        inspection_.report(where, "the index has another kind for '" + std::string{tag} + "'",
                           std::string{index_advice});
      }
    });
  }

  void compare_index(Connection& connection) {
    auto row = connection.rows(sql::inspect_tag_index{.to = bound_});
    row.step();
    if (is_damaged_ || row.entries() <= entries_) return;
    inspection_.report("table tag_index", "it has " + std::to_string(row.entries()) +
                                              " entries, and the tags of events make " +
                                              std::to_string(entries_));
  }

  FileInspection& inspection_;
  std::int64_t bound_ = 0;
  std::int64_t sequence_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t part_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t found_ = 0;
  std::int64_t entries_ = 0;
  bool is_damaged_ = false;
  /// Of the tags of the event so far: two may have the same.
  std::set<std::int64_t> hashes_;
};

}  // namespace

void check_tags(FileInspection& inspection) {
  TagsCheck{inspection}.run();
}

}  // namespace stela::sqlite
