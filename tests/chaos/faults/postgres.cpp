// A PostgreSQL server that dies, ends connections, or gives way to its standby; and a bad way to
// it.
#include "chaos/faults.hpp"

#include "postgres/server_session.hpp"

#include <memory>
#include <stdexcept>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

/// Some of the connections end, whatever they are at.
void terminate_backends(World& world) {
  const std::string count = world.server->ask(
      "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity "
      "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() "
      "ORDER BY random() LIMIT " +
      std::to_string(1 + world.random() % 8) + ") AS some");
  world.note("terminate backends", count);
}

/// "pg_ctl stop -m immediate", and a start.
void crash(World& world) {
  if (world.server->is_down()) return;
  world.server->crash();
  world.agenda.later(world.between(0, 1'500), [&world] {
    if (world.server->is_down()) world.server->start_again();
  });
  world.note("crash the server");
}

void promote(World& world) {
  if (world.server->is_promoted() || world.server->is_down()) return;
  world.server->promote();
  world.note("promote the standby");
}

/// Statements end where they are.
void time_out(World& world) {
  if (world.server->is_down()) return;
  world.server->ask("ALTER SYSTEM SET statement_timeout = '" +
                    std::to_string(1 + world.random() % 10) + "ms'");
  world.server->ask("SELECT pg_reload_conf()");
  world.agenda.later(world.between(200, 2'000), [&world] {
    world.server->ask("ALTER SYSTEM RESET statement_timeout");
    world.server->ask("SELECT pg_reload_conf()");
  });
  world.note("statement time-out");
}

/// Somebody cancels the waits for the standby.
void cancel_waits(World& world) {
  const std::string count = world.server->ask(
      "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  world.note("cancel waits for the standby", count);
}

/// Another session holds the order lock.
void hold_lock(World& world) {
  if (world.server->is_down()) return;
  try {
    auto holder = std::make_shared<postgres::Connection>(
        postgres::ConnectionOptions{.conninfo = world.server->primary().url()});
    holder->execute("BEGIN; SET LOCAL lock_timeout = 500");
    holder->run(postgres::sql::lock{.lock = postgres::order_lock("stela")});
    world.agenda.later(world.between(100, 2'500), [holder] {});
  } catch (const Error&) {
    return;
  }
  world.note("hold the order lock");
}

void cut_server(World& world) {
  world.server->line().cut();
  world.note("cut the database's line");
}

void delay_server(World& world) {
  const auto by = world.between(5, 150);
  test::TcpProxy& line = world.server->line();
  line.delay(by);
  world.agenda.later(world.between(300, 2'500), [&line] { line.delay(0ms); });
  world.note("delay the database's line", std::to_string(by.count()) + " ms");
}

void half_open_server(World& world) {
  world.server->line().half_open();
  world.note("half-open line to the database");
}

void restart_pooler(World& world) {
  if (world.server->is_down()) return;
  world.server->pooler().restart();
  world.note("restart the pooler");
}

bool is_on_postgres(const Settings& settings) {
  return settings.is_on_postgres();
}

}  // namespace

std::vector<Fault> postgres_faults() {
  return {{"terminate-backends", 3, terminate_backends, is_on_postgres},
          {"crash-server", 2, crash, is_on_postgres},
          {"promote", 1, promote, is_on_postgres},
          {"statement-timeout", 1, time_out, is_on_postgres},
          {"cancel-waits", 1, cancel_waits, is_on_postgres},
          {"hold-lock", 1, hold_lock, is_on_postgres},
          {"cut-database", 1, cut_server, is_on_postgres},
          {"delay-database", 1, delay_server, is_on_postgres},
          {"half-open-database", 1, half_open_server, is_on_postgres},
          {"restart-pooler", 1, restart_pooler, is_on_postgres}};
}

}  // namespace stela::chaos
