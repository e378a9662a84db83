#include <stela/eventstore/detail/postgres_status.hpp>

#include "postgres/core.hpp"
#include "postgres_sql/status.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace stela::postgres {
namespace {

using std::chrono::microseconds;

void read_settings(Connection& connection, ServerStatus& status) {
  const auto row = connection.row(sql::server_settings{});
  status.version = row.version().substr(0, row.version().find(' '));
  status.role = row.role();
  status.is_standby = row.is_standby();
  status.has_fsync = row.fsync() == "on";
  status.has_full_page_writes = row.full_page_writes() == "on";
  status.has_autovacuum = row.autovacuum() == "on";
  status.synchronous_commit = row.synchronous_commit();
  status.synchronous_standby_names = row.synchronous_standby_names();
  status.connections = row.connections();
  status.max_connections = row.max_connections();
  status.is_pooled = row.pid() != PQbackendPID(connection.handle());
  const std::string_view source = row.read_only_source();
  constexpr std::array<std::string_view, 4> own{"client", "database user", "session", "user"};
  status.role_only_reads = std::find(own.begin(), own.end(), source) != own.end();
  status.logged_values = row.logged_values();
  status.only_reads = !source.empty() && !status.role_only_reads;
}

void read_standbys(Connection& connection, ServerStatus& status) {
  if (status.is_standby) return;
  auto rows = connection.rows(sql::standbys{});
  while (rows.step()) {
    StandbyStatus standby{.name = std::string{rows.name()}, .state = std::string{rows.state()}};
    if (const auto is_one = rows.is_synchronous()) standby.is_synchronous = *is_one;
    if (const auto bytes = rows.lag_bytes()) standby.lag_bytes = *bytes;
    if (const auto lag = rows.lag_us()) standby.lag = microseconds{*lag};
    status.standbys.push_back(std::move(standby));
  }
}

void read_transactions(Connection& connection, ServerStatus& status) {
  auto rows = connection.rows(sql::open_transactions{});
  while (rows.step()) {
    status.transactions.push_back({std::string{rows.who()}, microseconds{rows.age_us()}});
  }
}

void read_locks(Connection& connection, ServerStatus& status) {
  auto rows = connection.rows(sql::table_locks{.schema = status.schema});
  while (rows.step()) {
    status.locks.push_back(
        {std::string{rows.table_name()}, std::string{rows.who()}, microseconds{rows.age_us()}});
  }
}

void read_tables(Connection& connection, ServerStatus& status) {
  auto rows = connection.rows(sql::table_sizes{.schema = status.schema});
  while (rows.step()) {
    status.tables.push_back({.table = std::string{rows.table_name()},
                             .live_rows = rows.live_rows(),
                             .dead_rows = rows.dead_rows(),
                             .bytes = rows.bytes()});
  }
}

/// A role may use the store in this way if it has the right to the first write.
struct Use {
  std::string_view name;
  std::string_view first;
  bool ServerStatus::*may;
};
constexpr std::array uses{Use{"append", "INSERT on events", &ServerStatus::may_append},
                          Use{"relay", "UPDATE on outbox_partitions", &ServerStatus::may_relay},
                          Use{"consume", "INSERT on inbox_readers", &ServerStatus::may_consume},
                          Use{"project", "UPDATE on projections", &ServerStatus::may_project}};

void read_rights(Connection& connection, ServerStatus& status) {
  std::vector<std::pair<std::string, std::string>> missing;
  auto rows =
      connection.rows(sql::rights{.schema = status.schema, .sql_schema = status.sql_schema});
  while (rows.step()) {
    if (!rows.may()) missing.emplace_back(rows.use(), rows.what());
    for (const Use& use : uses) {
      if (rows.may() && rows.use() == use.name && rows.what() == use.first) {
        status.*use.may = true;
      }
    }
  }
  for (auto& right : missing) {
    const auto use = std::find_if(uses.begin(), uses.end(),
                                  [&](const Use& one) { return right.first == one.name; });
    if (use == uses.end() || status.*use->may) {
      status.missing_rights.push_back(std::move(right.second));
    }
  }
}

}  // namespace

ServerStatus server_status(Store& store) {
  const auto* const core = dynamic_cast<Core*>(&store.database());
  if (core == nullptr) throw UsageError{"this store isn't on PostgreSQL"};
  // A read of the store would wait until it is durable, and existing connections have the settings
  // of their start.
  Connection connection{core->connection_options()};
  ServerStatus status;
  status.schema = connection.options().schema;
  status.sql_schema = connection.options().sql_schema;
  status.readers = core->readers();
  read_settings(connection, status);
  read_standbys(connection, status);
  read_transactions(connection, status);
  read_locks(connection, status);
  read_tables(connection, status);
  read_rights(connection, status);
  return status;
}

}  // namespace stela::postgres
