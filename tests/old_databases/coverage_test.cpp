// The databases of each version have rows in every table of it, in every state.
#include "old_databases/files.hpp"
#include "support/raw_sqlite.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace stela::test::old::coverage_test {
namespace {

using ::testing::IsEmpty;

/// How many rows of `table` meet `condition`, in all databases of a version.
std::int64_t count_in(const std::string& version, const std::string& table,
                      const std::string& condition) {
  std::int64_t count = 0;
  for (const std::string& database : databases()) {
    if (!database.starts_with(version + '/')) continue;
    const Copy copy{database};
    RawSqlite raw{copy.path()};
    if (raw.integer("SELECT count(*) FROM sqlite_schema WHERE name = '" + table + "'") == 0) {
      continue;
    }
    count += raw.integer("SELECT count(*) FROM " + table + " WHERE " + condition);
  }
  return count;
}

std::set<std::string> tables_of(const std::string& version) {
  std::set<std::string> tables;
  for (const std::string& database : databases()) {
    if (!database.starts_with(version + '/')) continue;
    const Copy copy{database};
    for (const std::string& name : RawSqlite{copy.path()}.rows(
             "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%@%' AND "
             "name NOT LIKE 'sqlite%'")) {
      tables.insert(name);
    }
  }
  return tables;
}

class OldVersion : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, OldVersion, ::testing::ValuesIn(versions()), [](const auto& one) {
  std::string name = "V" + one.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST_P(OldVersion, HasRowsInEveryTable) {
  const auto tables = tables_of(GetParam());

  ASSERT_GT(tables.size(), 20U);
  for (const std::string& table : tables) {
    EXPECT_GT(count_in(GetParam(), table, "TRUE"), 0) << table;
  }
}

struct State {
  const char* table;
  const char* condition;
};

/// When the databases of 0.1.0 were left, in microseconds.
#define STELA_LEFT_AT "1767229200000000"

/// What a message, a partition, a projector… can be in.
constexpr State states[] = {
    {"stela_facts", "value = 'full'"},
    {"stela_facts", "value = 'relaxed'"},
    {"stela_facts", "value = 'json'"},
    {"stela_facts", "name = 'codec' AND value <> 'json'"},
    {"stela_participants", "name = 'outbox'"},
    {"stela_participants", "name LIKE 'projector:%'"},
    {"event_kinds", "type = 'order.entered' AND version = 1"},
    {"event_kinds", "type = 'order.placed' AND version = 2"},
    {"event_kinds", "NOT publishes"},
    {"events", "metadata IS NOT NULL"},
    {"outbox_settings", "fence = 'stream' AND leasing"},
    {"outbox_settings", "fence = 'subject' AND leasing"},
    {"outbox_settings", "fence = 'none' AND NOT leasing"},
    {"outbox_messages", "attempts = 0 AND claim IS NULL"},
    {"outbox_messages", "attempts > 0 AND last_error IS NOT NULL"},
    {"outbox_messages", "claim IS NOT NULL AND claimed_until > " STELA_LEFT_AT},
    {"outbox_messages", "attempts > 0 AND next_attempt_at > " STELA_LEFT_AT},
    {"outbox_partitions", "owner IS NOT NULL AND lease_until > " STELA_LEFT_AT},
    {"outbox_partitions", "flight_count > 0 AND owner IS NOT NULL"},
    {"outbox_partitions", "attempts > 0 AND next_attempt_at > 0"},
    {"outbox_partitions", "stopped = 'poison'"},
    {"outbox_partitions", "adopted"},
    {"outbox_partitions", "retired_at IS NOT NULL"},
    {"outbox_generations", "partition_count = 1"},
    {"outbox_generations", "partition_count = 4"},
    {"outbox_generations", "partition_count = 8"},
    {"outbox_workers", "heartbeat_until < " STELA_LEFT_AT},
    {"outbox_workers", "heartbeat_until > " STELA_LEFT_AT},
    {"outbox_batches", "redelivery = 0"},
    {"outbox_batches", "redelivery > 0"},
    {"outbox_parked", "reason = 'refused'"},
    {"outbox_parked", "reason = 'attempts'"},
    {"outbox_parked", "reason = 'behind'"},
    {"outbox_discarded", "reason = 'discarded'"},
    {"outbox_discarded", "reason = 'skipped'"},
    {"outbox_redeliveries", "kind = 'retry'"},
    {"outbox_redeliveries", "kind = 'republish' AND claim IS NULL"},
    {"outbox_redeliveries", "claim IS NOT NULL"},
    {"projections", "kind = 'async'"},
    {"projections", "kind = 'inline'"},
    {"projections", "kind = 'reaction'"},
    {"projections", "state = 'living'"},
    {"projections", "state = 'retired'"},
    {"projections", "state = 'scratch'"},
    {"projections", "state = 'building' AND halted"},
    {"projections", "state = 'building' AND owner IS NOT NULL"},
    {"projections", "state = 'living' AND halted"},
    {"projections", "kind = 'reaction' AND failing > 0 AND NOT halted"},
    {"projection_parked", "state = 'parked'"},
    {"projection_parked", "state = 'retry'"},
    {"projection_parked", "state = 'skipped'"},
    {"inbox_gaps", "missing IS NOT NULL"},
    {"inbox_dead_letters", "retry = 0"},
    {"inbox_dead_letters", "retry = 1"},
};

TEST_P(OldVersion, HasEveryState) {
  for (const State& state : states) {
    EXPECT_GT(count_in(GetParam(), state.table, state.condition), 0)
        << state.table << " WHERE " << state.condition;
  }
}

TEST(OldVersions, IncludeTheFirst) {
  EXPECT_THAT(versions(), ::testing::Contains("0.1.0"));
}

TEST_P(OldVersion, HasDatabasesThatAProcessLeftWhenItWasKilled) {
  std::int64_t logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder_of(GetParam())}) {
    if (entry.path().string().ends_with("d.db-wal")) ++logs;
  }
  EXPECT_GE(logs, 3);
}

}  // namespace
}  // namespace stela::test::old::coverage_test
