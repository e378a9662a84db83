#include "postgres/core.hpp"

#include "forgotten_keys.hpp"
#include "ledger/cursor.hpp"
#include "postgres/event_import.hpp"
#include "postgres/pages.hpp"
#include "postgres/snapshots.hpp"
#include "postgres_sql.hpp"

#include <stela/eventstore/detail/postgres_settings.hpp>
#include <stela/framework/error.hpp>

namespace stela::postgres {
namespace {

using std::chrono::milliseconds;

void check_name(std::string_view option, const std::string& schema) {
  if (schema.size() <= 63 && schema.find('\0') == std::string::npos) return;
  throw UsageError{std::string{option} + " has " + std::to_string(schema.size()) +
                   " bytes; PostgreSQL takes 1 to 63, and no zero byte"};
}

Options checked(Options options) {
  if (options.log == nullptr || options.metrics == nullptr || options.clock == nullptr) {
    throw UsageError{"log, metrics and clock can't be null; leave them out for the defaults"};
  }
  if (options.schema.empty()) throw UsageError{"the schema of Stela's tables has no name"};
  check_name("the schema's name", options.schema);
  check_name("the name of sql_schema", sql_schema_of(options));
  if (sql_schema_of(options) == options.schema) {
    throw UsageError{"sql_schema names the schema of Stela's tables; name another one"};
  }
  for (const Setting<Options>& setting : settings()) {
    // The messages above say more about texts.
    if (setting.kind == SettingFacts::Kind::text) continue;
    if (const auto value = setting.get(options)) check(setting, *value);
  }
  if (options.busy_timeout >= options.reply_timeout) {
    throw UsageError{
        "busy_timeout must be less than reply_timeout: a server that waits for a lock says "
        "nothing"};
  }
  return options;
}

void check_keeps_transactions(Connection& connection) {
  try {
    connection.query("BEGIN");
    connection.query("COMMIT");
  } catch (const ConnectionLost& e) {
    // The pooler may also have lost its server.
    if (std::string_view{e.what()}.find("statement pooling") == std::string_view::npos) throw;
    throw StoreFailed{
        std::string{"the pooler doesn't give a transaction a connection of its own; set "
                    "its pool_mode to transaction: "} +
        e.what()};
  }
}

StoreIdentity identity_of(const std::string& conninfo, const Options& options, const Facts& facts) {
  return {facts.store_id, "schema '" + options.schema + "' of " + postgres::describe(conninfo)};
}

}  // namespace

/// Its session is the first that the store reads with.
Core::Contact Core::make_contact(const std::string& conninfo, const Options& options) {
  ConnectionOptions all{.conninfo = conninfo,
                        .schema = options.schema,
                        .connect_timeout = options.connect_timeout,
                        .reply_timeout = options.reply_timeout,
                        .patience = options.busy_timeout,
                        .is_read_only = options.read_only};
  auto session = std::make_unique<ServerSession>(all, ServerSession::First{});
  Connection& connection = session->connection;
  all.is_pooled = is_behind_pooler(connection);
  if (all.is_pooled) check_keeps_transactions(connection);
  if (all.is_pooled && options.read_only) {
    throw UsageError{
        "a store that is opened read-only can't go through a pooler, which hides that a standby is "
        "promoted; name the server itself"};
  }
  connection.learn(all.is_pooled, {});
  set_up(connection);
  Facts facts = prepare(connection, options);
  all.sql_schema = facts.sql_schema.value_or("");
  connection.learn(all.is_pooled, all.sql_schema);
  find_first_in(connection, all.sql_schema);
  // Asked now: a later caller may ask inside a read, which holds the connection.
  const ServerTime time = ServerTime::ask(connection);
  return {std::move(all), std::move(facts), std::move(session), time};
}

Core::Core(const std::string& conninfo, const Options& options)
    : Core{conninfo, options, make_contact(conninfo, checked(options))} {}

Core::Core(const std::string& conninfo, const Options& options, Contact first)
    : AppendingCore{Conventions{
          first.facts.codec, options.publishes, options.log, options.metrics,
          std::make_shared<StoreIdentity>(identity_of(conninfo, options, first.facts)),
          options.clock, options.keys}},
      options_{options},
      connection_options_{std::move(first.connection_options)},
      facts_{std::move(first.facts)},
      sessions_{connection_options_, readers(), std::move(first.session)},
      server_clock_{first.time},
      writer_{{.is_read_only = options_.read_only,
               .schema = options_.schema,
               .lock_timeout = options_.busy_timeout,
               .commit_timeout = options_.commit_timeout,
               .clock = options_.clock,
               .random = options_.random,
               .conventions = &conventions_},
              sessions_,
              *this,
              kinds_,
              durability_} {
  writer_.know_schema("eventstore", sql::migrations.size());
}

EventRange Core::read_stream(const StreamId& stream, const StreamQuery& query) {
  return ledger::read_stream(make_pages(*this, kinds_), stream, query);
}

EventRange Core::read_all(const AllQuery& query) {
  return ledger::read_all(make_pages(*this, kinds_), query);
}

EventRange Core::read_at(std::span<const GlobalSequence> sequences) {
  return ledger::read_at(make_pages(*this, kinds_), sequences);
}

GlobalSequence Core::last_sequence() {
  std::int64_t last = 0;
  read_durably(*this, [&](Connection& connection) {
    last = postgres::last_sequence(connection);
    return last;
  });
  return GlobalSequence{last};
}

std::optional<StoredSnapshot> Core::find_snapshot(const StreamId& stream, StreamVersion to,
                                                  GlobalSequence up_to) {
  return postgres::find_snapshot(*this, conventions_, stream, to, up_to);
}

void Core::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  writer_.refuse_unless_writable();
  sessions_.lend([&](Connection& connection) {
    postgres::save_snapshot(connection, stream, snapshot, clock().now());
  });
}

void Core::drop_snapshot(const StreamId& stream) {
  writer_.refuse_unless_writable();
  sessions_.lend([&](Connection& connection) { postgres::drop_snapshot(connection, stream); });
}

std::unique_ptr<stela::EventImport> Core::make_import() {
  return std::make_unique<EventImport>();
}

Store open(const std::string& conninfo, const Options& options) {
  Store store{std::make_unique<Core>(conninfo, options)};
  settle_keys(store, options.read_only);
  return store;
}

}  // namespace stela::postgres
