// A database that somebody else keeps busy, or that is resized.
#include "chaos/faults.hpp"
#include "chaos/roles.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/eventstore/backup.hpp>
#include <stela/outbox/operations.hpp>

#include <functional>
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

namespace {

/// With the shop's database; later if it can't be done now, as somebody who is paused may hold the
/// lock.
void do_with_shop(World& world, const std::function<void(sqlite::Store&)>& work) {
  try {
    auto shop = open_shop(world.settings);
    work(shop);
  } catch (const Error& e) {
    if (!e.is_retryable()) throw;
    world.agenda.later(500ms, [&world, work] { do_with_shop(world, work); });
  }
}

}  // namespace

void resize(World& world) {
  do_with_shop(world, [&world](sqlite::Store& shop) {
    const Settings& settings = world.settings;
    OutboxOperations{shop}.resize(settings.resized);
    world.note("resize",
               std::to_string(settings.partitions) + " to " + std::to_string(settings.resized));
  });
}

void back_up(World& world) {
  do_with_shop(world, [&world](sqlite::Store& shop) {
    const auto copied = sqlite::backup(shop, world.settings.backup());
    world.note("back up", "events up to " + std::to_string(copied.last.value()));
  });
}

std::vector<Fault> database_faults() {
  return {{"busy-database", 1, keep_busy}};
}

}  // namespace stela::chaos
