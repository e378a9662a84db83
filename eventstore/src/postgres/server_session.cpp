#include "postgres/server_session.hpp"

#include "database/checksum.hpp"
#include "database/postgres/sql_text.hpp"

#include <stela/framework/error.hpp>

#include <cstring>
#include <optional>
#include <string>

namespace stela::postgres {
namespace {

std::optional<Uuid> find_run(Connection& connection) {
  const Result found = connection.query("SELECT run FROM stela.stela_runs", {}, "finding the run");
  return found.rows() > 0 ? std::optional{to_uuid(found.bytes(0, 0))} : std::nullopt;
}

Uuid run_of(Connection& connection, std::string& users_path) {
  users_path = set_up(connection);
  if (const auto run = find_run(connection)) return *run;
  // The first connection of this run; or another one is that, and faster.
  connection.query(
      "INSERT INTO stela.stela_runs (run) VALUES (gen_random_uuid()) "
      "ON CONFLICT DO NOTHING",
      {}, "noting the run");
  if (const auto run = find_run(connection)) return *run;
  throw StoreBusy{"the server's run isn't noted yet; try again"};
}

}  // namespace

Uuid to_uuid(std::string_view bytes) noexcept {
  Uuid::Bytes raw{};
  if (bytes.size() == raw.size()) std::memcpy(raw.data(), bytes.data(), raw.size());
  return Uuid{raw};
}

std::string own_path(std::string_view schema) {
  return postgres::quoted(schema) + ", pg_temp";
}

std::string set_up(Connection& connection) {
  // Compiling a page's query takes longer than reading the page.
  // The statements of modules name no schema.
  const std::string path = own_path(connection.options().schema);
  Parameters parameters;
  parameters.add(path);
  parameters.add(std::string_view{connection.options().schema});
  const Result row = connection.query(
      "SELECT pg_backend_pid(), coalesce((SELECT string_agg(quote_ident(s.name), ', ' ORDER BY "
      "s.at) "
      "FROM unnest(current_schemas(false)) WITH ORDINALITY AS s(name, at) WHERE s.name <> $2), "
      "''), "
      "set_config('jit', 'off', false), set_config('search_path', $1, false)",
      std::move(parameters), "setting up a session");
  if (row.integer(0, 0) == PQbackendPID(connection.handle())) return std::string{row.bytes(0, 1)};
  // It would hide that the server's run has ended.
  throw UsageError{
      "the connection goes through a pooler, which isn't available on PostgreSQL yet; name the "
      "server itself"};
}

ServerSession::ServerSession(const ConnectionOptions& options) : connection{options} {
  connection.set_run(run_of(connection, users_path));
}

std::unique_ptr<ServerSession> Sessions::take_idle() {
  // First of all: a thread that the child has no copy of may have held the mutex.
  owner_.check();
  const std::lock_guard lock{mutex_};
  if (idle_.empty()) return nullptr;
  auto session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}

void Sessions::drop_idle() {
  const std::lock_guard lock{mutex_};
  idle_.clear();
}

Uuid Sessions::read_on(std::unique_ptr<ServerSession> session,
                       FunctionRef<void(Connection&)> work) {
  // A session on which reading failed isn't kept.
  work(session->connection);
  const Uuid run = session->run();
  keep(std::move(session));
  return run;
}

void Sessions::keep(std::unique_ptr<ServerSession> session) {
  if (!session->connection.is_usable()) return;
  const std::lock_guard lock{mutex_};
  if (idle_.size() < max_idle) idle_.push_back(std::move(session));
}

std::unique_ptr<ServerSession> Sessions::begun(FunctionRef<void(Connection&)> begin) {
  if (auto session = take_idle()) {
    try {
      begin(session->connection);
      return session;
    } catch (const ConnectionLost&) {
      drop_idle();
    } catch (...) {
      session->connection.roll_back();
      keep(std::move(session));
      throw;
    }
  }
  auto session = std::make_unique<ServerSession>(options_);
  begin(session->connection);
  return session;
}

Uuid Sessions::run(FunctionRef<void(Connection&)> begin, FunctionRef<void(Connection&)> work) {
  auto session = begun(begin);
  const Uuid run = session->run();
  try {
    work(session->connection);
  } catch (...) {
    session->connection.roll_back();
    keep(std::move(session));
    throw;
  }
  keep(std::move(session));
  return run;
}

Uuid Sessions::read(FunctionRef<void(Connection&)> work) {
  if (auto session = take_idle()) {
    try {
      return read_on(std::move(session), work);
    } catch (const ConnectionLost&) {
      // The others are as old.
      drop_idle();
    }
  }
  return read_on(std::make_unique<ServerSession>(options_), work);
}

std::int64_t order_lock(std::string_view schema) noexcept {
  return static_cast<std::int64_t>(
      database::text_checksum("stela, order of appends: " + std::string{schema}));
}

std::int64_t module_lock(std::string_view schema) noexcept {
  return static_cast<std::int64_t>(
      database::text_checksum("stela, writes of modules: " + std::string{schema}));
}

std::string_view sync_word(database::Sync sync) noexcept {
  return sync == database::Sync::none ? "off" : "on";
}

void commit_statements(Connection& connection, database::Sync sync) {
  try {
    check_committed(connection.query("COMMIT", {}, "the commit"));
  } catch (const ConnectionLost& e) {
    if (sync == database::Sync::none) throw;
    throw CommitInDoubt{std::string{"whether it is committed isn't known, look before you try "
                                    "again: "} +
                        e.what()};
  }
  if (sync != database::Sync::none) check_confirmed(connection);
}

void check_committed(const Result& commit) {
  if (commit.command() == "COMMIT") return;
  throw StoreFailed{"the transaction failed before its end, and the server rolled it back"};
}

void check_confirmed(Connection& connection) {
  const auto warnings = connection.take_warnings();
  if (warnings.empty()) return;
  throw StoreBusy{"the server didn't confirm that the commit is durable: " + warnings.front()};
}

}  // namespace stela::postgres
