// A key store on PostgreSQL.
#include "database/checksum.hpp"
#include "database/postgres/connection.hpp"
#include "key_database.hpp"
#include "keys_sql.hpp"
#include "postgres/schema.hpp"
#include "postgres/server_session.hpp"
#include "postgres/standby_wait.hpp"
#include "postgres_sql/keys.hpp"

#include <stela/framework/error.hpp>

namespace stela::keys {
namespace {

constexpr std::string_view key_schema = "stela_keys";

postgres::Options schema_options(const KeyOptions& options) {
  return {.schema = std::string{key_schema},
          .create = options.create,
          .read_only = options.read_only,
          .busy_timeout = options.busy_timeout};
}

/// Anybody with the master key could open a backup of both.
void refuse_events(postgres::Connection& connection, const std::string& name) {
  auto stores = connection.rows(postgres::sql::schema_with_events{});
  if (!stores.step()) return;
  throw UsageError{
      "'" + name + "' has a store of events, in the schema '" + std::string{stores.name()} +
      "': keys belong into another database, on another server if possible, as backups "
      "of the events must not have them"};
}

class ServerKeys final : public KeyDatabase {
 public:
  ServerKeys(const std::string& conninfo, const KeyOptions& options)
      : KeyDatabase{postgres::describe(conninfo), options.read_only},
        options_{.conninfo = conninfo,
                 .schema = std::string{key_schema},
                 .is_read_only = options.read_only},
        lock_timeout_{std::to_string(options.busy_timeout.count())} {
    connection_ = connect();
    if (postgres::is_behind_pooler(*connection_)) {
      throw UsageError{"a key store can't go through a pooler; name the server itself"};
    }
    const postgres::Options schema = schema_options(options);
    const postgres::Module module{"keys", sql::migrations_on_postgres, false};
    refuse_events(*connection_, name());
    if (postgres::is_migrated(*connection_, schema, module)) return;
    if (!options.create || options.read_only) {
      throw StoreFailed{"there is no key store in '" + name() + "', or an older one"};
    }
    postgres::migrate(*connection_, schema, module);
  }

  Connection& connection() override {
    if (connection_ != nullptr && connection_->is_alive()) return *connection_;
    connection_.reset();
    auto fresh = connect();
    on_contact(*fresh);
    connection_ = std::move(fresh);
    return *connection_;
  }

  /// A deleted row stays in its page while a transaction may see it, and longer. A truncated table
  /// has a new file once that is committed, and nobody reads the former one any more. Former keys
  /// of people stay in pages, wrapped by what is gone.
  std::string tidy() override try {
    const auto own = connect();
    Connection& shared = *own;
    own->execute("BEGIN");
    own->execute("LOCK TABLE stela.key_encryption_keys IN ACCESS EXCLUSIVE MODE");
    std::int64_t number = 0;
    std::string wrapped;
    Timestamp made_at;
    {
      auto newest = shared.rows(sql::newest_kek{});
      if (!newest.step() || newest.has_older()) return "another rotation has begun";
      number = newest.number();
      wrapped = newest.wrapped();
      made_at = newest.made_at();
    }
    own->execute("TRUNCATE stela.key_encryption_keys");
    shared.run(sql::insert_kek{.number = number, .wrapped = wrapped, .made_at = made_at});
    postgres::check_committed(own->query("COMMIT", {}, "removing former keys"));
    return {};
  } catch (const StoreBusy& e) {
    return std::string{
               "the former keys couldn't be removed, as while an open transaction, such as a "
               "running pg_dump, reads them: "} +
           e.what();
  } catch (const Error& e) {
    return std::string{
               "only the owner of the tables, or a role that may TRUNCATE them, removes the "
               "former keys: "} +
           e.what();
  }

 private:
  std::unique_ptr<postgres::Connection> connect() const {
    auto made = std::make_unique<postgres::Connection>(options_);
    postgres::set_up(*made);
    made->run(postgres::sql::set_up_key_session{.lock_timeout = lock_timeout_});
    return made;
  }
  void begin(Kind /*kind*/) override {
    const auto lock = static_cast<std::int64_t>(database::text_checksum("stela, writes of keys"));
    postgres::Connection::Pipeline pipeline{*connection_};
    pipeline.add(postgres::begin_sql);
    pipeline.add(postgres::sql::commit_confirmed{});
    pipeline.add(postgres::sql::lock{.lock = lock});
    pipeline.run_all("beginning to change keys");
  }
  void commit() override {
    postgres::check_committed(connection_->query("COMMIT", {}, "changing keys"));
    for (const std::string& warning : connection_->take_warnings()) {
      throw StoreBusy{"a key isn't confirmed by a standby: " + warning + "; try again"};
    }
  }
  void roll_back() noexcept override { connection_->roll_back(); }

  const postgres::ConnectionOptions options_;
  const std::string lock_timeout_;
  std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace

std::unique_ptr<KeyDatabase> open_on_server(const std::string& conninfo,
                                            const KeyOptions& options) {
  if (!options.master.unwrap || (options.erasures.empty() && !options.read_only)) {
    throw UsageError{
        "a key store on a server needs `.master` and `.erasures`: the same ones for all programs "
        "that use it"};
  }
  return std::make_unique<ServerKeys>(conninfo, options);
}

}  // namespace stela::keys
