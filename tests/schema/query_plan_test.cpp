// What SQLite makes of every statement: none walks through a table that grows with history, and
// none sorts, but for those that are named here with the reason, and those of verify (inspect_…),
// which looks at everything.
#include "schema/modules.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

namespace stela::test::query_plan_test {
namespace {

/// As many rows as there are kinds of events, partitions, workers, projectors.
const std::set<std::string> small_tables{
    "event_kinds", "stela_facts", "stela_participants", "outbox_generations", "outbox_partitions",
    "outbox_workers", "outbox_actions", "projections", "inbox_consumers", "sqlite_schema",
    "sqlite_temp_schema", "sqlite_sequence", "json_each", "projection_processes", "stela_series",
    "stela_acknowledged", "projection_timer_holds", "projection_timer_actions", "tag_types",
    "tag_epoch", "event_links_through", "key_store", "key_encryption_keys", "stela_personal_types",
    // Rows up to a limit.
    "few"};

const std::map<std::string, std::string> exceptions{
    {"eventstore/count_events", "groups the events of a range on demand"},
    {"eventstore/delete_links", "a step of a rebuild, from the index's beginning"},
    {"eventstore/has_tags", "the first row answers it"},
    {"eventstore/insert_stream", "the last row answers it"},
    {"eventstore/last_indexed_sequence", "an export that passes over damage asks it once"},
    {"eventstore/last_sequence", "the last row answers it"},
    {"eventstore/trim_changes", "the oldest hundred rows"},
    {"eventstore/standpoint", "the last row answers it"},
    {"eventstore/keys/position", "the last row answers it"},
    {"eventstore/keys/insert_key", "the last row answers it"},
    {"outbox/nats/count_parked", "each stream once, along an index"},
    {"outbox/failure_groups", "along an index of the streams that are held up"},
    {"outbox/find_redelivery", "of what was sent again of one event"},
    {"outbox/first_waiting", "the first row of an index answers it: see below"},
    {"outbox/has_parked", "the first row answers it"},
    {"outbox/has_publishable", "asked once, when an outbox is made"},
    {"outbox/last_event", "the last row answers it"},
    {"outbox/list_redeliveries", "an operator's list, within a range"},
    {"outbox/set_apart", "of what was parked or is sent again, once for each page of a comparison"},
    {"outbox/totals", "the last row answers it, and one row a partition"},
    {"projections/adopt_unknown", "of timers that were set aside"},
    {"projections/count_types", "groups the events of a replay on demand"},
    {"projections/event_kind_types", "of the kinds of events"},
    {"projections/has_timers", "the first row answers it"},
    {"projections/has_wanted_again", "the first row answers it"},
    {"projections/hidden_columns", "of the columns of one table"},
    {"projections/head", "the last row answers it"},
    {"projections/timers_tried_again", "an operator's list, of the few that an index has apart"},
    {"projections/tables", "of the tables of a database"}};

/// The table that `scanned`, as a plan shows it, stands for in `sql`.
std::string table_of(const std::string& scanned, const std::string& sql) {
  std::smatch found;
  const std::regex alias{"(\\w+) AS " + scanned + "\\b"};
  return std::regex_search(sql, found, alias) ? found[1].str() : scanned;
}

/// The first step of the plan that a growing table has to pay for; empty if there is none.
std::string costly_step(RawSqlite& database, const SqlFile& query) {
  for (const std::string& row : database.rows("EXPLAIN QUERY PLAN " + query.text)) {
    if (row.find("USE TEMP B-TREE") != std::string::npos) return row;
    std::smatch found;
    if (!std::regex_search(row, found, std::regex{"(SCAN|SEARCH) (?:main\\.)?(\\w+)"})) continue;
    // A search without a term, for the sake of an order, is a walk too.
    const bool is_bounded = found[1] == "SEARCH" && row.find('(') != std::string::npos;
    if (is_bounded || found[2] == "CONSTANT") continue;
    if (!small_tables.contains(table_of(found[2], query.text))) return row;
  }
  return {};
}

TEST(QueryPlans, WalkThroughNoTableThatGrows) {
  const TempDir dir;
  RawSqlite database = make_all_tables(dir.file("all.db"));
  const auto queries = all_queries();

  ASSERT_GT(queries.size(), 100U);
  for (const SqlFile& query : queries) {
    const std::string step = costly_step(database, query);
    const bool is_of_verify = query.name.find("/inspect_") != std::string::npos;
    if (is_of_verify || exceptions.contains(query.name)) continue;
    EXPECT_EQ(step, "") << query.name << ":\n" << query.text;
  }
}

TEST(QueryPlans, OfAStreamAndOfTheStoreFollowAnIndex) {
  const TempDir dir;
  RawSqlite database = make_all_tables(dir.file("all.db"));
  const std::map<std::string, std::string> expected{
      {"eventstore/appended_versions", "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
      {"eventstore/read_all", "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
      {"eventstore/read_stream",
       "SEARCH events USING INDEX sqlite_autoindex_events_1 (stream=? AND version>? AND "
       "version<?)"},
      {"eventstore/stream_head",
       "SEARCH e USING COVERING INDEX sqlite_autoindex_events_1 (stream=?) LEFT-JOIN"},
      {"eventstore/tag_places", "SEARCH tag_index USING PRIMARY KEY (tag=? AND sequence>?)"},
      {"outbox/first_waiting",
       "SEARCH outbox_redeliveries USING COVERING INDEX outbox_redeliveries_by_generation"},
      {"outbox/next_messages",
       "SEARCH m USING PRIMARY KEY (partition=? AND sequence>? AND sequence<?)"}};

  std::size_t seen = 0;
  for (const SqlFile& query : all_queries()) {
    const auto wanted = expected.find(query.name);
    if (wanted == expected.end()) continue;
    ++seen;
    std::string plan;
    for (const auto& row : database.rows("EXPLAIN QUERY PLAN " + query.text)) plan += row + '\n';
    EXPECT_NE(plan.find(wanted->second), std::string::npos) << query.name << ":\n" << plan;
  }
  EXPECT_EQ(seen, expected.size());
}

}  // namespace
}  // namespace stela::test::query_plan_test
