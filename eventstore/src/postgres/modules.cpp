// The store's database, as other modules use it.
#include "postgres/commit_watch.hpp"
#include "postgres/core.hpp"
#include "postgres/event_reader.hpp"
#include "postgres/presence.hpp"

#include <stela/framework/error.hpp>

#include <string>

namespace stela::postgres {
namespace {

[[noreturn]] void refuse(std::string_view what) {
  throw UsageError{std::string{what} + " isn't available on PostgreSQL yet; use a store on SQLite"};
}

}  // namespace

bool Core::has_own_clock() const noexcept {
  return options_.clock != &system_clock() && !options_.leases_by_server;
}

Timestamp Core::now() const {
  return has_own_clock() ? options_.clock->now() : server_clock_.now(sessions_);
}

Timestamp Core::now(database::Connection& connection) const {
  return has_own_clock() ? options_.clock->now() : ask_for_time(connection_of(connection));
}

void Core::read(Work work) {
  read_inside("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", work);
}

void Core::read_snapshot(Work work) {
  read_inside("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work);
}

void Core::read_inside(std::string_view begin_with, Work work) {
  std::int64_t reached = 0;
  const auto begin = [&](Connection& connection) {
    begin_transaction(connection, begin_with, "beginning to read", [](Connection::Pipeline&) {});
  };
  const Uuid run = sessions_.run(begin, [&](Connection& connection) {
    work(connection);
    Connection::Pipeline pipeline{connection};
    // Asked last, to cover everything that was read.
    const auto last = pipeline.add(sql::last_sequence{});
    // A rollback also undoes the session settings of the user's SQL.
    pipeline.add(connection.ran_users_sql() ? "ROLLBACK" : "COMMIT");
    auto results = pipeline.run_all("reading");
    reached = last.row(results).last();
    connection.note_users_sql(false);
  });
  if (reached == 0 || vouch(run, reached)) return;
  throw StoreBusy{"the server was restarted while it was read; try again"};
}

void Core::write(Work work, database::Sync sync) {
  refuse_durably([&] {
    writer_.run_statements(
        [&](Connection& connection) {
          // All other writers wait for this thread.
          const Sessions::Urgent urgent;
          work(connection);
        },
        sync);
  });
}

void Core::write_along(Work work, database::Sync sync) {
  writer_.refuse_unless_writable();
  const std::string timeout = std::to_string(options_.busy_timeout.count());
  const auto begin = [&](Connection& connection) {
    begin_transaction(connection, begin_sql, "beginning to write", [&](auto& pipeline) {
      pipeline.add(
          sql::set_transaction{.synchronous_commit = sync_word(sync), .lock_timeout = timeout});
      pipeline.add(sql::lock_shared{.lock = module_lock(options_.schema)});
    });
  };
  refuse_durably([&] {
    sessions_.run(begin, [&](Connection& connection) {
      work(connection);
      commit_statements(connection, sync, {sessions_, commit_deadline()});
    });
  });
}

void Core::write_apart(Work work, database::Sync sync) {
  write_along(
      [&](database::Connection& connection) {
        const Writer::Inside inside{writer_};
        work(connection);
      },
      sync);
}

bool Core::has_lost_session(const Error& error) const noexcept {
  return dynamic_cast<const ConnectionLost*>(&error) != nullptr;
}

void Core::refuse_durably(FunctionRef<void()> write) {
  try {
    write();
  } catch (const UsageError&) {
    // The refusal may depend on events that aren't on disk yet.
    last_sequence();
    throw;
  }
}

void Core::migrate(std::string_view module, std::span<const database::Migration>,
                   std::span<const database::Migration> on_postgres) {
  if (on_postgres.empty()) refuse("the module '" + std::string{module} + "'");
  const Module wanted{module, on_postgres};
  bool is_there = false;
  sessions_.lend(
      [&](Connection& connection) { is_there = is_migrated(connection, options_, wanted); });
  if (!is_there) {
    const auto session = sessions_.open();
    StandbyWait standby{session->connection, {sessions_, commit_deadline()}};
    postgres::migrate(session->connection, options_, wanted);
    standby.check_confirmed();
  }
  writer_.know_schema(module, on_postgres.size());
}

std::unique_ptr<database::EventReader> Core::make_event_reader() {
  return std::make_unique<EventReader>(kinds_);
}

std::unique_ptr<database::CommitWatch> Core::watch_commits() {
  return std::make_unique<CommitWatch>(*this, sessions_);
}

std::unique_ptr<database::Presence> Core::appear() {
  return presences_.appear();
}

std::optional<bool> Core::is_present(std::int64_t number) const noexcept {
  return postgres::is_present(sessions_, number);
}

}  // namespace stela::postgres
