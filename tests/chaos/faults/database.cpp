// A database that somebody else keeps busy, or that is resized.
#include "chaos/faults.hpp"
#include "chaos/roles.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/outbox/operations.hpp>

#include <memory>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

void keep_busy(World& world) {
  auto writer = std::make_shared<test::RawSqlite>(world.settings.database());
  try {
    sqlite3_busy_timeout(writer->handle(), 1'000);
    writer->run("BEGIN IMMEDIATE");
  } catch (const std::exception&) {
    return;
  }
  world.agenda.later(world.between(100, 2'500), [writer] { writer->run("ROLLBACK"); });
  world.note("busy database");
}

}  // namespace

void resize(World& world) {
  const Settings& settings = world.settings;
  try {
    auto shop = open_shop(settings);
    OutboxOperations{shop}.resize(settings.resized);
  } catch (const Error& e) {
    // Somebody who is paused may hold the lock.
    if (!e.is_retryable()) throw;
    return world.agenda.later(500ms, [&world] { resize(world); });
  }
  world.note("resize",
             std::to_string(settings.partitions) + " to " + std::to_string(settings.resized));
}

std::vector<Fault> database_faults() {
  return {{"busy-database", 1, keep_busy}};
}

}  // namespace stela::chaos
