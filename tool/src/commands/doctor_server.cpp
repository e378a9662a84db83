// doctor's examination of a PostgreSQL server.
#include "cli/text.hpp"
#include "commands/doctor.hpp"
#include "commands/server_measures.hpp"

#include <stela/eventstore/detail/postgres_status.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

using postgres::ServerStatus;
using postgres::StandbyStatus;

/// This many dead rows don't matter, however few the live ones are.
constexpr std::int64_t few_dead_rows = 100'000;

void look_at_settings(Examination& examination, const ServerStatus& status) {
  const std::string own =
      status.sql_schema.empty() ? "" : ", SQL of your own in '" + status.sql_schema + '\'';
  examination.fine("server", "PostgreSQL " + status.version + ", schema '" + status.schema + '\'' +
                                 own + ", role '" + status.role + "'");
  if (status.is_standby) {
    examination.warn("server", "it is a standby, which only reads",
                     "name the primary to append and relay");
  }
  if (!status.has_fsync) {
    examination.bad("fsync", "it is off: a crash of the host can lose and damage what is committed",
                    "ALTER SYSTEM SET fsync = on, and reload the configuration");
  } else if (!status.has_full_page_writes) {
    examination.bad("fsync", "full_page_writes is off: a crash can leave pages half written",
                    "ALTER SYSTEM SET full_page_writes = on, and reload the configuration");
  } else {
    examination.fine("fsync", "on");
  }
  examination.fine("synchronous_commit",
                   "'" + status.synchronous_commit +
                       "' by default; Stela sets it itself, and answers after a flush");
  if (!status.has_autovacuum) {
    examination.warn("autovacuum", "it is off: tables grow with each message that is published",
                     "ALTER SYSTEM SET autovacuum = on, and reload the configuration");
  }
  const std::string used =
      std::to_string(status.connections) + " of " + std::to_string(status.max_connections) +
      " in use; a process with these settings reads over at most " + std::to_string(status.readers);
  if (status.connections * 10 > status.max_connections * 8) {
    examination.warn("connections", used, "raise max_connections, or put a pooler in between");
  } else {
    examination.fine("connections", used + (status.is_pooled ? ", through a pooler" : ""));
  }
}

/// "db2 (synchronous, 1.5 MiB behind, 3 ms)".
std::string described(const StandbyStatus& standby) {
  if (!standby.is_synchronous) return standby.name + " (a role in pg_monitor sees its state)";
  std::string text = standby.name + (*standby.is_synchronous ? " (synchronous" : " (asynchronous");
  if (!standby.state.empty() && standby.state != "streaming") text += ", " + standby.state;
  if (standby.lag_bytes) text += ", " + in_bytes(*standby.lag_bytes) + " to replay";
  if (standby.lag) text += ", lag " + in_words(*standby.lag);
  return text + ')';
}

/// False if commits don't become durable.
bool look_at_standbys(Examination& examination, const ServerStatus& status) {
  if (status.is_standby) return true;
  for (const StandbyStatus& standby : status.standbys) {
    if (standby.lag > long_lag || (!standby.state.empty() && standby.state != "streaming")) {
      examination.warn("standbys", described(standby),
                       "see its log, and the network to it; a synchronous one holds up appends");
    } else {
      examination.fine("standbys", described(standby));
    }
  }
  if (const std::string problem = problem_of_commits(status); !problem.empty()) {
    examination.bad("standbys", problem,
                    "start the standby; appends wait, and none is acknowledged without it");
    return false;
  }
  if (status.standbys.empty()) {
    examination.fine("standbys", "none is connected");
  } else if (status.synchronous_standby_names.empty()) {
    examination.warn("standbys", "all are asynchronous: a failover can lose the last commits",
                     "set synchronous_standby_names if nothing acknowledged may be lost");
  }
  return true;
}

void look_at_transactions(Examination& examination, const ServerStatus& status) {
  bool is_fine = true;
  for (const auto& open : status.transactions) {
    if (open.age < long_transaction) continue;
    is_fine = false;
    examination.warn("transactions", open.who + " is open for " + in_words(open.age),
                     "end it: dead rows of the outbox stay until then");
  }
  if (is_fine) {
    examination.fine("transactions", "none is open for more than " +
                                         in_words(std::chrono::microseconds{long_transaction}));
  }
}

void look_at_tables(Examination& examination, const ServerStatus& status) {
  std::int64_t bytes = 0;
  for (const auto& table : status.tables) {
    bytes += table.bytes;
    if (table.dead_rows < few_dead_rows || table.dead_rows < table.live_rows * 2) continue;
    examination.warn("tables",
                     table.table + " has " + in_digits(table.dead_rows) + " dead rows for " +
                         in_digits(table.live_rows) + ", in " + in_bytes(table.bytes),
                     "see the long transactions and autovacuum; VACUUM " + status.schema + "." +
                         table.table + " removes them");
  }
  examination.fine("tables", in_bytes(bytes) + " with their indexes");
}

/// "read, append and relay".
std::string uses_of(const ServerStatus& status) {
  std::vector<std::string> uses{"read"};
  if (status.may_append) uses.emplace_back("append");
  if (status.may_relay) uses.emplace_back("relay");
  if (status.may_consume) uses.emplace_back("consume");
  if (status.may_project) uses.emplace_back("project");
  std::string text = uses.front();
  for (std::size_t i = 1; i < uses.size(); ++i) {
    text.append(i + 1 < uses.size() ? ", " : " and ").append(uses[i]);
  }
  return text;
}

void look_at_rights(Examination& examination, const ServerStatus& status) {
  if (status.missing_rights.empty()) {
    return examination.fine("rights", "role '" + status.role + "' may " + uses_of(status));
  }
  std::string list;
  for (const std::string& right : status.missing_rights) list += (list.empty() ? "" : ", ") + right;
  examination.warn("rights", "role '" + status.role + "' lacks " + list,
                   "run grants.sql again, as after each migration, or GRANT them");
}

void look_at_server_writes(Examination& examination, const DatabasePlace& place,
                           const ServerStatus& status) {
  if (status.is_standby) return examination.fine("writing", "not tried: a standby only reads");
  if (status.only_reads) {
    return examination.bad("writing",
                           "default_transaction_read_only is on: nothing can be appended",
                           "ask who set it, and why, as some services do when a disk is full; then "
                           "ALTER SYSTEM or ALTER DATABASE … RESET default_transaction_read_only");
  }
  if (!status.may_append || status.role_only_reads) {
    return examination.fine("writing", "not tried: role '" + status.role + "' appends nothing");
  }
  // Begins and ends a transaction without a change.
  place.open({}).transact([](Transaction&) {});
  examination.fine("writing", "the database can be written to");
}

}  // namespace

bool look_at_server(Examination& examination, const DatabasePlace& place, Store& store) try {
  const ServerStatus status = postgres::server_status(store);
  look_at_settings(examination, status);
  const bool is_usable = look_at_standbys(examination, status);
  look_at_transactions(examination, status);
  look_at_tables(examination, status);
  look_at_rights(examination, status);
  if (!is_usable) return false;
  look_at_server_writes(examination, place, status);
  return true;
} catch (const Error& e) {
  examination.bad("writing", e.what(), "appends and workers are blocked by the same problem");
  return false;
}

}  // namespace stela::tool
