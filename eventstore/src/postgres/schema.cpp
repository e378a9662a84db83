#include "postgres/schema.hpp"

#include "database/checksum.hpp"
#include "database/postgres/sql_text.hpp"
#include "postgres/server_session.hpp"
#include "postgres_sql.hpp"
#include "postgres_sql/participants.hpp"
#include "postgres_sql/schema.hpp"

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
/// A migration that begins with one of these lines forbids older processes to write, or also to
/// read.
constexpr std::string_view shut_out_writers_line = "-- Shuts out older writers.\n";
constexpr std::string_view shut_out_readers_line = "-- Shuts out older readers.\n";

bool has_ledger(Connection& connection, const std::string& schema) {
  return connection.run(sql::has_ledger{.schema = schema}) > 0;
}

/// The applied migrations of a module.
struct Applied {
  /// How many this Stela knows and has compared.
  std::size_t count = 0;
  /// A process must know this many migrations to read the tables, or to write to them.
  std::int64_t oldest_reader = 1;
  std::int64_t oldest_writer = 1;
};

Applied read_ledger(Connection& connection, const Module& module) {
  auto rows = connection.rows(sql::ledger{.module = module.name});
  Applied applied;
  while (rows.step()) {
    applied.oldest_reader = std::max(applied.oldest_reader, rows.oldest_reader());
    applied.oldest_writer = std::max(applied.oldest_writer, rows.oldest_writer());
    if (applied.count == module.migrations.size()) continue;
    const database::Migration& known = module.migrations[applied.count++];
    if (rows.number() == known.number && rows.checksum() == checksum_of(known)) continue;
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
  auto found = connection.rows(sql::first_object{.schema = schema});
  const bool is_there = found.step();
  if (is_there && found.name()) {
    throw SchemaMismatch{"the schema '" + schema + "' holds '" + std::string{*found.name()} +
                         "', which isn't Stela's; name another schema"};
  }
  // A role that can't create a schema may have been given an empty one.
  if (!is_there) connection.execute("CREATE SCHEMA " + postgres::quoted(schema));
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
  connection.run(sql::note_migration{
      .module = module.name,
      .number = migration.number,
      .name = migration.name,
      .checksum = checksum_of(migration),
      .oldest_reader = shuts_out_readers ? migration.number : before.oldest_reader,
      .oldest_writer = shuts_out_writers ? migration.number : before.oldest_writer});
  // Makes writers reread the ledger.
  if (shuts_out_writers) connection.run(sql::change_epoch{}, "shutting out older writers");
}

/// Tables belong to the role that creates them, so this acts as the owner of the existing tables,
/// or of the given schema. StoreFailed if this role isn't a member of the owner.
void act_as_owner(Connection& connection, const std::string& schema, const std::string& problem) {
  auto found = connection.rows(sql::owner{.schema = schema});
  if (!found.step() || found.is_mine()) return;
  const std::string owner{found.owner()};
  if (!found.may_be_acted_as()) {
    throw StoreFailed{problem + ", and only '" + owner + "', who owns the schema '" + schema +
                      "', may change that, not '" + std::string{found.me()} +
                      "': run 'stela migrate' as '" + owner + "', and grants.sql after it"};
  }
  connection.run(sql::act_as{.role = owner});
}

/// False if another process holds the migration lock.
bool try_to_migrate(Connection& connection, const std::string& schema, const Module& module) {
  connection.query(begin_sql);
  const auto lock =
      static_cast<std::int64_t>(database::text_checksum("stela, migrations: " + schema));
  const bool is_mine = connection.row(sql::try_to_lock{.lock = lock}).is_mine();
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

void make_sql_schema(Connection& connection, const std::string& name, const std::string& store) {
  if (name.empty()) return;
  if (has_ledger(connection, name)) {
    throw UsageError{"the schema '" + name +
                     "' is another store's; name one for SQL of your own by sql_schema"};
  }
  const auto found = connection.row(sql::sql_schema{.schema = name, .store = store});
  if (found.is_there()) return;
  if (!found.may_make()) {
    throw StoreFailed{"the schema '" + name + "', for SQL of your own, is missing, and '" +
                      std::string{found.me()} +
                      "' may not make it: make it for that role, as grants.sql does, or name "
                      "another one by sql_schema"};
  }
  connection.execute("CREATE SCHEMA " + postgres::quoted(name));
  connection.execute(std::string{found.note()});
}

/// Sets the facts that aren't set.
void set_facts(Connection& connection, const Options& options) {
  const std::string sql_schema = sql_schema_of(options);
  connection.query(begin_sql);
  act_as_owner(connection, options.schema, "facts of the store aren't set");
  // Waits for a faster process, which has then set them all.
  const std::int64_t set =
      connection.run(sql::set_facts{.store_id = make_uuid().to_string(),
                                    .codec = to_string(options.codec.value_or(Codec::json)),
                                    .sql_schema = sql_schema});
  if (set > 0) make_sql_schema(connection, sql_schema, options.schema);
  check_committed(connection.query("COMMIT", {}, sql::set_facts::doing));
}

Facts read_facts(Connection& connection) {
  auto rows = connection.rows(sql::facts{});
  Facts facts;
  while (rows.step()) {
    const std::string_view name = rows.name();
    const std::string value{rows.value()};
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
  // Polls, because a session that waits in the server would block sessions that lock tables.
  while (!is_migrated(connection, options, module)) {
    if (!options.migrate && has_ledger(connection, options.schema) &&
        read_ledger(connection, module).count > 0) {
      database::refuse_older(module.name);
    }
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
  auto rows = connection.rows(sql::oldest_writers{});
  while (rows.step()) {
    const auto module = known.find(rows.module());
    if (module == known.end() || module->second >= rows.oldest_writer()) continue;
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
