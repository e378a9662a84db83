#include "chaos/world.hpp"

#include "chaos/roles.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/nats/inbox.hpp>

#include <fstream>

namespace stela::chaos {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr int appenders = 3;
constexpr int workers = 3;
constexpr int consumers = 2;

}  // namespace

World::World(const Settings& the_settings)
    : settings{the_settings},
      random{the_settings.seed},
      proxy{server.port()},
      members{the_settings, proxy.url()} {
  make_databases();
  members.add("append", appenders);
  members.add("relay", workers);
  members.add("consume", consumers);
}

void World::make_databases() {
  auto shop = open_shop(settings);
  OutboxOptions options = outbox_options(settings);
  options.partition_count = settings.partitions;
  const Outbox outbox{shop, options};
  auto effects = sqlite::open(settings.effects(), {.durability = sqlite::Durability::relaxed});
  const nats::Inbox inbox{effects};
  // No UNIQUE: an effect that happens twice must be seen.
  test::RawSqlite{settings.effects()}.run(
      "CREATE TABLE effects (entry INTEGER PRIMARY KEY, id TEXT, stream TEXT, version INTEGER, "
      "sequence INTEGER)");
}

void World::pass(milliseconds time) {
  pass_until([] { return false; }, time);
}

bool World::pass_until(const std::function<bool()>& condition, milliseconds limit) {
  return test::eventually(
      [&] {
        agenda.run_due();
        members.look_after(problems);
        return condition();
      },
      limit);
}

milliseconds World::between(int least, int most) {
  return milliseconds{std::uniform_int_distribution<int>{least, most}(random)};
}

void World::note(const std::string& kind, const std::string& detail) {
  ++faults;
  ++by_kind[kind];
  const auto at = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun_).count();
  std::ofstream{settings.folder + "/faults.log", std::ios::app} << at << " ms  " << kind << "  "
                                                                << detail << '\n';
}

}  // namespace stela::chaos
