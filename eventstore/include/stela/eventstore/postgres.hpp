// Stores on PostgreSQL: one schema of a database, which any number of machines may use.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace stela::postgres {

struct Options {
  /// A fact of the store, set when it is created (the default is JSON). For an existing store leave
  /// it out, or state what it must be: UsageError if it differs.
  std::optional<Codec> codec = {};
  /// The schema of Stela's tables.
  std::string schema = "stela";
  /// The schema where SQL of your own (`Sql`) makes its tables, and looks for them first. A fact of
  /// the store as well, set when it is created: the default is the name of Stela's schema and
  /// "_app", and "" leaves it to the search_path of the connection string or the role. Created if
  /// it is missing. A store without this fact does as with "", until its owner opens it with this
  /// option.
  std::optional<std::string> sql_schema = {};
  /// Whether to create the schema and its tables if they are missing. NotFound if they are missing
  /// and it is false.
  bool create = true;
  /// Only read, from a standby, too, and from a server or as a role whose transactions only read by
  /// default. Of several hosts it uses the primary, or a standby if there is none. Nothing is
  /// created, migrated or written; any write is a UsageError. What a standby shows is in order and
  /// without gaps, and may be older than what the primary has. Never let an effect outside rest on
  /// it: an asynchronous standby may show what a failover to another one loses. Not through a
  /// pooler.
  bool read_only = false;
  /// Whether what is read is durable before it is answered. That waits for a flush if something was
  /// just written, and with a synchronous standby for its answer. False is for reports, which must
  /// be made while that standby is missing, too: what they show may be lost by a crash or a
  /// failover. Never let an effect outside rest on it. Writes are durable in any case.
  bool durable_reads = true;
  /// How many connections read, at most. When all of them are in use, further threads wait for one,
  /// the first thread first. Only a read inside another one, or inside a transaction, waits for
  /// none: it opens a connection beyond that number. Not set: 2 for each core of this machine, at
  /// least 8 and at most 32.
  std::optional<int> readers = {};
  /// How long to wait for the lock that orders appends, for a connection that reads, for another
  /// process that migrates, or for a server that is gone, before StoreBusy. An append may wait so
  /// long three times: for its turn in this store, for that lock, and for a lock of another program
  /// on Stela's tables. Less than `reply_timeout`.
  std::chrono::milliseconds busy_timeout{5000};
  /// For each host of the connection string.
  std::chrono::milliseconds connect_timeout{5000};
  /// A server that says nothing for longer has lost the connection.
  std::chrono::milliseconds reply_timeout{30000};
  /// How long to ask for the outcome of a commit whose answer was lost, or that a synchronous
  /// standby doesn't confirm, before CommitInDoubt. A read waits as long for the standby, before
  /// StoreBusy. Both name the standby.
  std::chrono::milliseconds commit_timeout{30000};
  /// Decides whether an event is published. Empty: as its event type says.
  PublicationPolicy publishes = {};
  LogSink* log = &no_log();
  MetricSink* metrics = &no_metrics();
  const Clock* clock = &system_clock();
  /// Leases and retries go by the server's clock, which all machines share, also if a clock is
  /// given: then that one is this machine's alone, and says when events were recorded.
  bool leases_by_server = false;
  /// The source of the random part of event ids. Null: the operating system.
  Random* random = nullptr;
  /// The keys of personal fields. They must outlive the store. Null: those fields stay sealed, and
  /// none is written.
  Keyring* keys = nullptr;
};

/// Opens the store in a database, by a connection string of PostgreSQL's
/// ("postgresql://app@db/shop", "host=… dbname=…"). Creates its tables if they are missing, and
/// migrates them if they are older. SchemaMismatch if they are newer, or were changed, or if the
/// schema holds tables of another application. StoreFailed if the server refuses the user, is too
/// old, or only reads; StoreBusy if it can't be reached. Of several hosts
/// ("postgresql://app@db1,db2/shop") it uses the primary, unless `target_session_attrs` says
/// otherwise, and finds it again after a failover. PgBouncer in transaction mode may stand between.
/// UsageError if it isn't a connection string, or this build has no engine for PostgreSQL.
STELA_EVENTSTORE_EXPORT Store open(const std::string& conninfo, const Options& options = {});

/// "app@db1,db2/shop": what a connection string names, without its password, for messages.
/// UsageError if it isn't a connection string; that repeats none of it.
STELA_EVENTSTORE_EXPORT std::string describe(const std::string& conninfo);

}  // namespace stela::postgres
