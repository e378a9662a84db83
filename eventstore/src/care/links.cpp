// Checks the links index: it must list every event that carries an id, and no other.
#include "links.hpp"

#include "care/walk.hpp"
#include "event_numbers.hpp"
#include "operations_sql/catalogue.hpp"

#include <algorithm>

namespace stela::links {
namespace {

using database::Connection;
namespace sql = operations::sql;

constexpr std::int64_t page_events = 2'000;

constexpr std::string_view advice =
    "the events are the truth: build the index again by 'stela index build --again'";

class Walk {
 public:
  explicit Walk(database::Inspection& inspection) : inspection_{inspection} {}

  void run() {
    if (!inspection_.read([&](Connection& connection) { begin(connection); })) return;
    for (std::int64_t from = 1; from <= through_; from += page_events) {
      if (!inspection_.read([&](Connection& connection) { read_events(connection, from); })) return;
      inspection_.progress(std::min(from + page_events - 1, through_), through_);
    }
    bool has_extra = false;
    inspection_.read([&](Connection& connection) {
      auto count = connection.rows(sql::inspect_link_count{});
      has_extra = count.step() && count.entries() > expected_;
    });
    if (has_extra) walk_links();
  }

 private:
  void begin(Connection& connection) {
    {
      auto row = connection.rows(sql::last_sequence{});
      if (row.step()) last_ = row.last();
    }
    auto row = connection.rows(sql::links_through{});
    if (!row.step()) {
      inspection_.report("table event_links_through", "its row is missing", std::string{advice});
      return;
    }
    through_ = std::min(row.sequence(), last_);
    if (row.sequence() <= last_) return;
    inspection_.report("table event_links_through",
                       "it says that " + event_number(row.sequence()) + " is indexed, and " +
                           event_number(last_) + " is the last one",
                       std::string{advice});
  }

  void read_events(Connection& connection, std::int64_t from) {
    Pairs pairs;
    {
      const std::int64_t to = std::min(from + page_events - 1, through_);
      auto rows = connection.rows(sql::carriers{.from = from, .to = to});
      while (rows.step()) pairs.add(rows);
    }
    const std::string wanted = pairs.to_json();
    expected_ += std::ssize(pairs.sorted());
    auto missing = connection.rows(sql::inspect_missing_links{.links = wanted});
    while (missing.step()) {
      --expected_;
      inspection_.report(event_number(missing.sequence()),
                         "the index of links doesn't lead to it by all ids that it carries",
                         std::string{advice});
    }
  }

  void walk_links() {
    const care::Walked walked = care::walk(
        inspection_, Pair{care::smallest, care::smallest},
        [](const Pair& after) {
          return sql::inspect_links{
              .link = after.first, .sequence = after.second, .limit = care::page_rows};
        },
        [](const auto& row) {
          return Pair{row.link(), row.sequence()};
        },
        [&](Connection&, const auto& row) { look_at(row); }, [](std::int64_t) {});
    if (walked != care::Walked::into_disorder) return;
    inspection_.report("table event_links", "rows are out of order", std::string{advice});
  }

  void look_at(const sql::inspect_links::Row& row) {
    Pairs pairs;
    if (const auto id = row.event_id()) {
      pairs.add(row.sequence(), row.recorded_at(), *id, row.correlation_id(), row.causation_id());
    }
    const auto& wanted = pairs.sorted();
    if (std::binary_search(wanted.begin(), wanted.end(), Pair{row.link(), row.sequence()})) return;
    inspection_.report(event_number(row.sequence()),
                       "the index of links leads to it by an id that it doesn't carry",
                       std::string{advice});
  }

  database::Inspection& inspection_;
  std::int64_t last_ = 0;
  std::int64_t through_ = 0;
  /// The number of links that the index should have.
  std::int64_t expected_ = 0;
};

}  // namespace

void Check::run(database::Inspection& inspection) {
  Walk{inspection}.run();
}

}  // namespace stela::links
