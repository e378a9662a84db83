// Checks tags: each is undamaged and indexed, and no event lacks a tag that all events of its type
// have.
#include "care/checks.hpp"
#include "care/laws.hpp"
#include "care/walk.hpp"
#include "database/checksum.hpp"
#include "operations_sql/care.hpp"
#include "operations_sql/catalogue.hpp"

#include <stela/framework/query.hpp>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::care {
namespace {

using database::Connection;
namespace sql = operations::sql;

constexpr std::int64_t page_events = 8192;

constexpr std::string_view tag_index_advice =
    "the tags are there, but queries may miss them: export the events, and import them into a new "
    "database";

std::string tags_of(std::int64_t sequence) {
  return "the tags of event " + std::to_string(sequence);
}

std::int64_t hash_of(std::string_view tag) noexcept {
  return static_cast<std::int64_t>(database::text_checksum(tag));
}

class TagsCheck {
 public:
  explicit TagsCheck(Inspection& inspection) : inspection_{inspection} {}

  void run() {
    const bool begun = inspection_.read([&](Connection& connection) {
      auto row = connection.rows(sql::last_sequence{});
      if (row.step()) bound_ = row.last();
    });
    hold(inspection_, laws::tag_epoch_is_there);
    if (!begun || !walk_tags()) return;
    if (has_extra_entries()) walk_index();
    walk_events();
  }

 private:
  /// An event's tag, as the index must list it.
  struct Entry {
    std::string tag;
    std::int64_t hash;
    std::int64_t sequence;
    std::int64_t kind;
  };

  bool walk_tags() {
    using Key = std::pair<std::int64_t, std::int64_t>;
    const Walked walked = walk(
        inspection_, Key{sequence_, part_},
        [&](const Key& after) {
          return sql::inspect_tags{
              .sequence = after.first, .part = after.second, .to = bound_, .limit = page_rows};
        },
        [](const auto& row) {
          return Key{row.sequence(), row.part()};
        },
        [&](Connection&, const auto& row) { look_at(row); },
        [&](std::int64_t found) {
          compare_index();
          inspection_.progress(found, found);
        });
    if (walked == Walked::into_disorder) {
      inspection_.report("table event_tags", "rows are out of order");
    }
    return walked != Walked::as_far_as_readable;
  }

  void look_at(const sql::inspect_tags::Row& row) {
    const std::int64_t sequence = row.sequence();
    const bool is_next = sequence != sequence_;
    if (is_next) hashes_.clear();
    const std::int64_t expected = is_next ? 0 : part_ + 1;
    sequence_ = sequence;
    part_ = row.part();
    if (part_ != expected) {
      inspection_.report(tags_of(sequence), "part " + std::to_string(expected) + " is missing");
    }
    const std::optional<std::int64_t> kind = row.kind();
    if (!kind) {
      damaged_.insert(sequence);
      return inspection_.report(tags_of(sequence), "the event is missing");
    }
    if (row.checksum() != inspection_.engine().tags_checksum(row.tags(), sequence, part_)) {
      damaged_.insert(sequence);
      return inspection_.report(tags_of(sequence), "they don't match their checksum");
    }
    split_tags(row.tags(), [&](std::string_view tag) {
      const std::int64_t hash = hash_of(tag);
      if (!hashes_.insert(hash).second) return;
      ++entries_;
      wanted_.push_back({std::string{tag}, hash, sequence, *kind});
    });
  }

  void compare_index() {
    const std::vector<Entry> wanted = std::exchange(wanted_, {});
    std::string json = "[";
    for (const Entry& entry : wanted) {
      if (json.size() > 1) json += ',';
      json.append("[").append(std::to_string(entry.hash)).append(",");
      json.append(std::to_string(entry.sequence)).append(",");
      json.append(std::to_string(entry.kind)).append("]");
    }
    json += ']';
    inspection_.read([&](Connection& connection) {
      auto row = connection.rows(sql::inspect_tag_places{.wanted = json});
      while (row.step()) {
        const Entry& entry = wanted[static_cast<std::size_t>(row.at())];
        const std::string tag = " '" + entry.tag + '\'';
        inspection_.report(
            tags_of(entry.sequence),
            row.kind() ? "the index has another kind for" + tag : "the index doesn't lead to" + tag,
            std::string{tag_index_advice});
      }
    });
  }

  bool has_extra_entries() {
    bool has_extra = false;
    inspection_.read([&](Connection& connection) {
      auto row = connection.rows(sql::inspect_tag_index{.to = bound_});
      has_extra = row.step() && row.entries() > entries_;
    });
    return has_extra;
  }

  /// Reports index entries for tags that their events don't have.
  void walk_index() {
    using Key = std::pair<std::int64_t, std::int64_t>;
    const Walked walked = walk(
        inspection_, Key{smallest, smallest},
        [](const Key& after) {
          return sql::inspect_tag_entries{
              .tag = after.first, .sequence = after.second, .limit = page_rows};
        },
        [](const auto& row) {
          return Key{row.tag(), row.sequence()};
        },
        [&](Connection&, const auto& row) { check_entry(row); }, [](std::int64_t) {});
    if (walked == Walked::into_disorder) {
      inspection_.report("table tag_index", "entries are out of order");
    }
  }

  void check_entry(const sql::inspect_tag_entries::Row& row) {
    const std::int64_t sequence = row.sequence();
    if (sequence > bound_ || damaged_.contains(sequence)) return;
    bool has = false;
    split_tags(row.tags(), [&](std::string_view one) { has = has || hash_of(one) == row.tag(); });
    if (has) return;
    inspection_.report(tags_of(sequence), "the index leads to one that the event doesn't have");
  }

  void walk_events() {
    std::int64_t to = 0;
    bool more = true;
    while (more && to < bound_) {
      const bool was_read = inspection_.read([&](Connection& connection) {
        // A damaged store may have few events, far apart.
        auto next = connection.rows(sql::next_sequence{.from = to + 1, .to = bound_});
        more = next.step();
        if (!more) return;
        const std::int64_t from = next.sequence();
        to = bound_ - from < page_events ? bound_ : from + page_events - 1;
        look_for_untagged(connection, from, to);
      });
      if (!was_read) return;
    }
  }

  void look_for_untagged(Connection& connection, std::int64_t from, std::int64_t to) {
    auto rows = connection.rows(sql::inspect_untagged{.from = from, .to = to});
    while (rows.step()) {
      if (damaged_.contains(rows.sequence())) continue;
      inspection_.report(tags_of(rows.sequence()), "every event of its type has one of category '" +
                                                       std::string{rows.category()} +
                                                       "', and it has none");
    }
  }

  Inspection& inspection_;
  std::int64_t bound_ = 0;
  std::int64_t sequence_ = smallest;
  std::int64_t part_ = smallest;
  std::int64_t entries_ = 0;
  /// The tags of the page.
  std::vector<Entry> wanted_;
  /// Events that are missing, or whose tags don't match their checksum.
  std::set<std::int64_t> damaged_;
  /// Hashes of the event's tags so far: two tags may share one.
  std::set<std::int64_t> hashes_;
};

}  // namespace

void check_tags(Inspection& inspection) {
  TagsCheck{inspection}.run();
}

}  // namespace stela::care
