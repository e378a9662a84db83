// Stores on PostgreSQL: one schema of a database, which any number of machines may use.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace stela::postgres {

struct Options {
  /// A fact of the store, set when it is created (the default is JSON). For an existing store,
  /// leave it out or state the present value: UsageError if it differs.
  std::optional<Codec> codec = {};
  /// The schema of Stela's tables.
  std::string schema = "stela";
  /// The schema where SQL of your own (`Sql`) creates its tables, and looks for them first. Also a
  /// fact of the store, set when it is created: the default is the name of Stela's schema and
  /// "_app", and "" leaves it to the search_path of the connection string or the role. Created if
  /// it is missing. A store without this fact behaves as with "", until its owner opens it with
  /// this option.
  std::optional<std::string> sql_schema = {};
  /// Whether to create the schema and its tables if they are missing. NotFound if they are missing
  /// and it is false.
  bool create = true;
  /// Whether to migrate tables that are older. SchemaMismatch if they are and it is false.
  bool migrate = true;
  /// Only reads; also works on a standby, and on a server or as a role whose transactions are
  /// read-only by default. Of several hosts it uses the primary, or a standby if there is none.
  /// Nothing is created, migrated or written; any write is a UsageError. A standby shows events in
  /// order and without gaps, but may lag behind the primary. Never base an external effect on it:
  /// an asynchronous standby may show events that a failover to another one loses. Not through a
  /// pooler.
  bool read_only = false;
  /// Whether events are durable before a read returns them. That waits for a flush after a recent
  /// write, and for a synchronous standby's confirmation. False is for reports that must work while
  /// that standby is missing: a crash or a failover may lose what they show. Never base an external
  /// effect on it. Writes are durable in any case.
  bool durable_reads = true;
  /// The most connections for reading. When all of them are in use, further threads wait in order
  /// of arrival. Only a read inside another read, or inside a transaction, doesn't wait: it opens
  /// an extra connection. Not set: 2 for each core of this machine, at least 8 and at most 32.
  std::optional<int> readers = {};
  /// How long to wait before StoreBusy: for the lock that orders appends, for a connection for
  /// reading, for another process that migrates, or for an unreachable server. An append may wait
  /// that long three times: for its turn in this store, for that lock, and for another program's
  /// lock on Stela's tables. Must be less than `reply_timeout`.
  std::chrono::milliseconds busy_timeout{5000};
  /// For each host of the connection string.
  std::chrono::milliseconds connect_timeout{5000};
  /// The connection counts as lost after the server has been silent for this long.
  std::chrono::milliseconds reply_timeout{30000};
  /// How long to ask for the outcome of a commit whose answer was lost, or that a synchronous
  /// standby doesn't confirm, before CommitInDoubt. A read waits that long for the standby, before
  /// StoreBusy. Both errors name the standby.
  std::chrono::milliseconds commit_timeout{30000};
  /// Decides whether an event is published. Empty: as its event type says.
  PublicationPolicy publishes = {};
  LogSink* log = &no_log();
  MetricSink* metrics = &no_metrics();
  const Clock* clock = &system_clock();
  /// Leases and retries use the server's clock, which all machines share, even if a clock is given:
  /// that clock then only says when this machine recorded events.
  bool leases_by_server = false;
  /// The source of the random part of event ids. Null: the operating system.
  Random* random = nullptr;
  /// The keys of personal fields. They must outlive the store. Null: those fields stay sealed, and
  /// none is written.
  Keyring* keys = nullptr;
};

/// Opens the store in a database, by a PostgreSQL connection string ("postgresql://app@db/shop",
/// "host=… dbname=…"). Creates its tables if they are missing, and migrates them if they are older.
/// SchemaMismatch if they are newer or were changed, or if the schema holds tables of another
/// application. StoreFailed if the server refuses the user, is too old, or is read-only; StoreBusy
/// if it can't be reached. Of several hosts ("postgresql://app@db1,db2/shop") it uses the primary,
/// unless `target_session_attrs` says otherwise, and finds it again after a failover. It works
/// through PgBouncer in transaction mode. UsageError if it isn't a connection string, or this build
/// has no engine for PostgreSQL.
STELA_EVENTSTORE_EXPORT Store open(const std::string& conninfo, const Options& options = {});

/// "app@db1,db2:5433/shop": a connection string without its password, for messages. UsageError,
/// which repeats none of it, if it isn't a connection string.
STELA_EVENTSTORE_EXPORT std::string describe(const std::string& conninfo);

}  // namespace stela::postgres
