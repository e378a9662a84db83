#include "postgres/schema.hpp"

#include "database/checksum.hpp"
#include "database/postgres/sql_text.hpp"
#include "postgres/server_session.hpp"
#include "postgres_sql.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace stela::postgres {

using std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds first_pause_between_polls{10};
constexpr std::chrono::milliseconds longest_pause_between_polls{160};
/// With these words a migration begins after which older processes may only read, or do nothing.
constexpr std::string_view shut_out_writers_line = "-- Shuts out older writers.\n";
constexpr std::string_view shut_out_readers_line = "-- Shuts out older readers.\n";

bool has_ledger(Connection& connection, const std::string& schema) {
  Parameters parameters;
  parameters.add(schema);
  return connection
             .query(
                 "SELECT FROM pg_catalog.pg_tables "
                 "WHERE schemaname = $1 AND tablename = 'stela_migrations'",
                 std::move(parameters), "looking for Stela's tables")
             .rows() > 0;
}

/// What a module's tables have had.
struct Applied {
  /// Those that this Stela knows, and has compared.
  std::size_t count = 0;
  /// Whoever knows fewer migrations may not read the tables, or not write to them.
  std::int64_t oldest_reader = 1;
  std::int64_t oldest_writer = 1;
};

Applied read_ledger(Connection& connection, const Module& module) {
  Parameters parameters;
  parameters.add(module.name);
  const Result rows = connection.query(
      "SELECT number, checksum, oldest_reader, oldest_writer FROM stela.stela_migrations "
      "WHERE module = $1 ORDER BY number",
      std::move(parameters), "reading the ledger of migrations");
  Applied applied;
  for (int row = 0; row < rows.rows(); ++row) {
    applied.oldest_reader = std::max(applied.oldest_reader, rows.integer(row, 2));
    applied.oldest_writer = std::max(applied.oldest_writer, rows.integer(row, 3));
    if (applied.count == module.migrations.size()) continue;
    const database::Migration& known = module.migrations[applied.count++];
    if (rows.integer(row, 0) == known.number && rows.bytes(row, 1) == checksum_of(known)) continue;
    throw SchemaMismatch{
        "migration " + std::to_string(known.number) +
        " of the tables isn't this Stela's; they were made by a version that wasn't "
        "released, or the ledger was changed; export the events with the program "
        "that made them, and import them into another schema"};
  }
  return applied;
}

/// SchemaMismatch if a newer Stela's migrations shut this one out. False if some of its own are
/// missing.
bool is_up_to_date(Connection& connection, const Module& module, bool is_read_only) {
  const Applied applied = read_ledger(connection, module);
  const auto known = static_cast<std::int64_t>(module.migrations.size());
  if ((is_read_only ? applied.oldest_reader : applied.oldest_writer) > known) {
    throw SchemaMismatch{"the tables of '" + std::string{module.name} +
                         "' were migrated by a newer Stela; use that one"};
  }
  return applied.count == module.migrations.size();
}

void make_ledger(Connection& connection, const std::string& schema) {
  Parameters parameters;
  parameters.add(schema);
  const Result found = connection.query(
      "SELECT (SELECT c.relname::text FROM pg_catalog.pg_class AS c "
      "WHERE c.relnamespace = n.oid ORDER BY c.relname LIMIT 1) "
      "FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1",
      std::move(parameters), "looking for the schema");
  if (found.rows() > 0 && !found.is_null(0, 0)) {
    throw SchemaMismatch{"the schema '" + schema + "' holds '" + std::string{found.bytes(0, 0)} +
                         "', which isn't Stela's; name another schema"};
  }
  // A role that isn't let make one may have been given it.
  if (found.rows() == 0) connection.execute("CREATE SCHEMA " + postgres::quoted(schema));
  connection.execute(
      "CREATE TABLE stela.stela_migrations (module text NOT NULL, number integer NOT NULL, "
      "name text NOT NULL, checksum text NOT NULL, "
      "applied_at timestamptz NOT NULL DEFAULT clock_timestamp(), "
      "oldest_reader integer NOT NULL, oldest_writer integer NOT NULL, "
      "PRIMARY KEY (module, number))");
}

void apply(Connection& connection, const Module& module, const database::Migration& migration) {
  const Applied before = read_ledger(connection, module);
  connection.execute(std::string{migration.text});
  const bool shuts_out_readers = migration.text.starts_with(shut_out_readers_line);
  const bool shuts_out_writers =
      shuts_out_readers || migration.text.starts_with(shut_out_writers_line);
  const std::string checksum = checksum_of(migration);
  Parameters parameters;
  parameters.add(module.name).add(std::int64_t{migration.number});
  parameters.add(migration.name).add(checksum);
  parameters.add(shuts_out_readers ? migration.number : before.oldest_reader);
  parameters.add(shuts_out_writers ? migration.number : before.oldest_writer);
  connection.query(
      "INSERT INTO stela.stela_migrations "
      "(module, number, name, checksum, oldest_reader, oldest_writer) "
      "VALUES ($1, $2, $3, $4, $5, $6)",
      std::move(parameters), "noting a migration");
  if (!shuts_out_writers) return;
  // Whoever appends looks at the ledger again.
  connection.query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()", {},
                   "shutting out older writers");
}

/// Whoever makes a table owns it: that is the owner of the others, or of the schema that was given.
/// StoreFailed if this role isn't a member of that one.
void act_as_owner(Connection& connection, const std::string& schema, const std::string& problem) {
  Parameters parameters;
  parameters.add(schema);
  const Result found = connection.query(
      "SELECT r.rolname::text, r.rolname = current_user, pg_has_role(r.oid, 'MEMBER'), "
      "current_user::text FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_roles AS r "
      "ON r.oid = coalesce((SELECT c.relowner FROM pg_catalog.pg_class AS c "
      "WHERE c.relnamespace = n.oid AND c.relname = 'stela_migrations' AND c.relkind = 'r'), "
      "CASE n.nspowner WHEN 'pg_database_owner'::regrole THEN (SELECT d.datdba "
      "FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()) "
      "ELSE n.nspowner END) WHERE n.nspname = $1",
      std::move(parameters), "looking for the owner of the tables");
  if (found.rows() == 0 || found.integer(0, 1) != 0) return;
  const std::string owner{found.bytes(0, 0)};
  if (found.integer(0, 2) == 0) {
    throw StoreFailed{problem + ", and only '" + owner + "', who owns the schema '" + schema +
                      "', may change that, not '" + std::string{found.bytes(0, 3)} +
                      "': run 'stela migrate' as '" + owner + "', and grants.sql after it"};
  }
  Parameters role;
  role.add(owner);
  connection.query("SELECT set_config('role', $1, true)", std::move(role),
                   "acting as the owner of the tables");
}

/// False if another process has the lock of those who migrate.
bool try_to_migrate(Connection& connection, const std::string& schema, const Module& module) {
  connection.query(begin_sql);
  Parameters parameters;
  parameters.add(
      static_cast<std::int64_t>(database::text_checksum("stela, migrations: " + schema)));
  const Result locked =
      connection.query("SELECT pg_try_advisory_xact_lock($1)", std::move(parameters));
  const bool is_mine = locked.integer(0, 0) != 0;
  if (is_mine) {
    act_as_owner(connection, schema,
                 "the tables of '" + std::string{module.name} + "' are missing or older");
    if (!has_ledger(connection, schema)) make_ledger(connection, schema);
    const std::size_t applied = read_ledger(connection, module).count;
    for (std::size_t i = applied; i < module.migrations.size(); ++i) {
      apply(connection, module, module.migrations[i]);
    }
    if (module.is_of_store) connection.execute("SELECT stela.guard_tables()");
  }
  check_committed(connection.query("COMMIT", {}, "migrating"));
  return is_mine;
}

std::optional<Codec> parse_codec(std::string_view name) noexcept {
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    if (to_string(codec) == name) return codec;
  }
  return std::nullopt;
}

void make_sql_schema(Connection& connection, const std::string& name) {
  if (name.empty()) return;
  if (has_ledger(connection, name)) {
    throw UsageError{"the schema '" + name +
                     "' is another store's; name one for SQL of your own by sql_schema"};
  }
  Parameters parameters;
  parameters.add(name);
  const Result found = connection.query(
      "SELECT to_regnamespace(quote_ident($1)) IS NOT NULL, "
      "has_database_privilege(current_database(), 'CREATE'), current_user::text",
      std::move(parameters), "looking for the schema of the user's SQL");
  if (found.integer(0, 0) != 0) return;
  const std::string role{found.bytes(0, 2)};
  if (found.integer(0, 1) == 0) {
    throw StoreFailed{"the schema '" + name + "', for SQL of your own, is missing, and '" + role +
                      "' may not make it: make it for that role, as grants.sql does, or name "
                      "another one by sql_schema"};
  }
  connection.execute("CREATE SCHEMA " + postgres::quoted(name));
}

/// Those that aren't set.
void set_facts(Connection& connection, const Options& options) {
  const std::string id = make_uuid().to_string();
  const std::string sql_schema = sql_schema_of(options);
  connection.query(begin_sql);
  act_as_owner(connection, options.schema, "facts of the store aren't set");
  Parameters parameters;
  parameters.add(id).add(to_string(options.codec.value_or(Codec::json))).add(sql_schema);
  // Whoever was faster is waited for, and has set them all.
  const Result set = connection.query(
      "INSERT INTO stela.stela_facts (name, value) "
      "VALUES ('store_id', $1), ('codec', $2), ('sql_schema', $3) ON CONFLICT DO NOTHING",
      std::move(parameters), "setting the facts of the store");
  if (set.changes() > 0) make_sql_schema(connection, sql_schema);
  check_committed(connection.query("COMMIT", {}, "setting the facts of the store"));
}

Facts read_facts(Connection& connection) {
  const Result rows =
      connection.query("SELECT name, value FROM stela.stela_facts", {}, "reading the facts");
  Facts facts;
  for (int row = 0; row < rows.rows(); ++row) {
    const std::string_view name = rows.bytes(row, 0);
    const std::string value{rows.bytes(row, 1)};
    if (name == "store_id") facts.store_id = Uuid::parse(value).value_or(Uuid{});
    if (name == "sql_schema") facts.sql_schema = value;
    if (name != "codec") continue;
    const auto codec = parse_codec(value);
    if (!codec) throw SchemaMismatch{"the codec '" + value + "' isn't one of this Stela's"};
    facts.codec = *codec;
  }
  return facts;
}

}  // namespace

std::string sql_schema_of(const Options& options) {
  return options.sql_schema.value_or(options.schema + "_app");
}

std::string checksum_of(const database::Migration& migration) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                 database::text_checksum(migration.text), 16);
  return {digits.data(), end.ptr};
}

bool is_migrated(Connection& connection, const Options& options, const Module& module) {
  return has_ledger(connection, options.schema) &&
         is_up_to_date(connection, module, options.read_only);
}

void migrate(Connection& connection, const Options& options, const Module& module) {
  if (options.read_only) {
    if (is_migrated(connection, options, module)) return;
    throw SchemaMismatch{"the tables of '" + std::string{module.name} +
                         "' are missing or older; open the store once with a newer Stela that may "
                         "write"};
  }
  const auto deadline = steady_clock::now() + options.busy_timeout;
  auto pause = first_pause_between_polls;
  // By polling: who waits in the server would stand in the way of what takes locks on tables.
  while (!is_migrated(connection, options, module)) {
    if (try_to_migrate(connection, options.schema, module)) return;
    if (steady_clock::now() >= deadline) {
      throw StoreBusy{"another process has been migrating the tables for " +
                      std::to_string(options.busy_timeout.count()) + " ms; try again"};
    }
    std::this_thread::sleep_for(
        std::exchange(pause, std::min(2 * pause, longest_pause_between_polls)));
  }
}

void check_writer(Connection& connection, const KnownModules& known) {
  const Result rows = connection.query(
      "SELECT module, max(oldest_writer) FROM stela.stela_migrations GROUP BY module", {},
      "reading the ledger of migrations");
  for (int row = 0; row < rows.rows(); ++row) {
    const auto module = known.find(rows.bytes(row, 0));
    if (module == known.end() || module->second >= rows.integer(row, 1)) continue;
    throw SchemaMismatch{"a newer Stela has migrated the tables of '" + module->first +
                         "'; restart this process with it"};
  }
}

Facts prepare(Connection& connection, const Options& options) {
  if (!options.create && !has_ledger(connection, options.schema)) {
    throw NotFound{"there is no store in " + postgres::describe(connection.options().conninfo) +
                   ", schema '" + options.schema + "'"};
  }
  migrate(connection, options, {"eventstore", sql::migrations});
  Facts facts = read_facts(connection);
  const bool is_incomplete = facts.store_id.is_nil() || (options.sql_schema && !facts.sql_schema);
  if (is_incomplete && !options.read_only) {
    set_facts(connection, options);
    facts = read_facts(connection);
  }
  if (facts.store_id.is_nil()) throw SchemaMismatch{"the id of the store is missing or damaged"};
  if (options.codec && *options.codec != facts.codec) {
    throw UsageError{"this store was made with codec '" + std::string{to_string(facts.codec)} +
                     "', and '" + std::string{to_string(*options.codec)} + "' was asked for"};
  }
  if (options.sql_schema && *options.sql_schema != facts.sql_schema.value_or(*options.sql_schema)) {
    throw UsageError{"the sql_schema of this store is '" + *facts.sql_schema + "', and '" +
                     *options.sql_schema + "' was asked for"};
  }
  return facts;
}

}  // namespace stela::postgres
