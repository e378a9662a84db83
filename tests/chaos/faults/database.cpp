// A database that somebody else keeps busy, whose disk is full, or that is resized or copied.
#include "chaos/faults.hpp"
#include "chaos/roles.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/eventstore/sqlite_care.hpp>
#include <stela/outbox/operations.hpp>

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

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

/// The database's; what is appended there makes it a little fuller still.
void fill_disk(World& world) {
  if (!world.disk || std::exchange(world.is_disk_full, true)) return;
  try {
    world.disk->fill_up(world.random() % 300'000);
  } catch (const std::runtime_error&) {
    // Others wrote meanwhile: it is full.
  }
  world.agenda.later(world.between(200, 2'000), [&world] {
    world.disk->make_room();
    world.is_disk_full = false;
  });
  world.note("full disk");
}

/// With the shop's database; later if it can't be done now, as somebody who is paused may hold the
/// lock.
void do_with_shop(World& world, const std::function<void(Store&)>& work) {
  try {
    auto shop = open_shop(world.settings);
    work(shop);
  } catch (const Error& e) {
    if (!may_pass(e)) throw;
    world.agenda.later(500ms, [&world, work] { do_with_shop(world, work); });
  }
}

}  // namespace

void resize(World& world) {
  do_with_shop(world, [&world](Store& shop) {
    const Settings& settings = world.settings;
    OutboxOperations{shop}.resize(settings.resized);
    world.note("resize",
               std::to_string(settings.partitions) + " to " + std::to_string(settings.resized));
  });
}

void back_up(World& world) {
  do_with_shop(world, [&world](Store& shop) {
    const auto copied = sqlite::backup(shop, world.settings.backup());
    world.note("back up", "events up to " + std::to_string(copied.last.value()));
  });
}

std::vector<Fault> database_faults() {
  const auto is_a_file = [](const Settings& settings) { return !settings.is_on_postgres(); };
  return {{"busy-database", 1, keep_busy, is_a_file}, {"full-disk", 2, fill_disk, is_a_file}};
}

}  // namespace stela::chaos
