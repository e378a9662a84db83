#include "chaos/world.hpp"

#include "chaos/jumping_clock.hpp"
#include "chaos/roles.hpp"
#include "support/process.hpp"

#include <stela/nats/inbox.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

namespace stela::chaos {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr int appenders = 3;
constexpr int workers = 3;
constexpr int consumers = 2;
/// Two on each machine.
constexpr int on_postgres = 4;
constexpr int reminders = 2;

bool wants_disk(const Settings& settings) {
  if (settings.is_on_postgres()) return false;
  return settings.has("full-disk") && (settings.small_disk || !settings.kinds.empty());
}

std::unique_ptr<test::SmallDisk> small_disk(const Settings& settings, bool is_wanted) {
  if (!is_wanted) return nullptr;
  const auto megabytes = 64 + 2 * static_cast<std::size_t>(settings.seconds);
  auto disk = std::make_unique<test::SmallDisk>(megabytes);
  if (disk->is_mounted()) return disk;
  std::ofstream{settings.folder + "/faults.log", std::ios::app}
      << "skipped: a full disk, as no file system can be mounted here\n";
  return nullptr;
}

/// Without a limit of our own a server that starts allows itself a part of what is free then, which
/// may be less than what it holds: it would refuse everything from then on.
std::string store_on(const test::SmallDisk& disk) {
  return "jetstream { store_dir: \"" + disk.file("") + "\", max_file_store: 1TB }";
}

}  // namespace

World::World(const Settings& the_settings, bool small_broker_disk)
    : settings{the_settings},
      random{the_settings.seed},
      disk{small_disk(settings, wants_disk(settings))},
      broker_disk{small_disk(settings, small_broker_disk)},
      server{settings.is_on_postgres() ? std::make_unique<Server>(settings) : nullptr},
      broker{static_cast<std::size_t>(settings.servers), broker_disk ? store_on(*broker_disk) : ""},
      proxy{broker.ports()},
      own_line{broker.ports()},
      members{the_settings, proxy.url()} {
  pace_lines();
  make_disk();
  make_databases();
  const bool is_large = settings.is_on_postgres();
  members.add("append", is_large ? on_postgres : appenders);
  members.add("relay", (is_large ? on_postgres : workers) - 1);
  members.add("relay", 1, own_line.url());
  members.add("consume", consumers);
  if (the_settings.has_deadlines()) members.add("remind", reminders);
  for (const Member& member : members.all()) {
    JumpingClock{settings.clock_of(member.number)}.set_ahead(settings.skew_of(member.number));
  }
}

void World::make_disk() const {
  if (disk) {
    std::filesystem::create_directory_symlink(disk->file(""), settings.disk());
  } else {
    std::filesystem::create_directory(settings.disk());
  }
}

void World::make_databases() {
  auto shop = open_shop(settings);
  OutboxOptions options = outbox_options(settings);
  options.partition_count = settings.partitions;
  const Outbox outbox{shop, options};
  auto effects = open_effects(settings);
  const nats::InboxOperations inbox{effects};
  // No UNIQUE: an effect that happens twice must be seen.
  const std::string entry = settings.is_on_postgres() ? "entry BIGINT GENERATED ALWAYS AS IDENTITY"
                                                      : "entry INTEGER PRIMARY KEY";
  effects.transact([&](Transaction& transaction) {
    Sql{transaction}.execute("CREATE TABLE effects (" + entry +
                             ", id TEXT, stream TEXT, version BIGINT, sequence BIGINT)");
  });
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

bool World::falls_to_zero(const std::function<std::int64_t()>& left, std::chrono::seconds patience,
                          const std::function<void()>& beside) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  auto limit = steady_clock::now() + patience;
  while (true) {
    const auto began = steady_clock::now();
    const std::int64_t now_left = left();
    const auto now = steady_clock::now();
    if (now_left == 0) return true;
    if (now_left < least) limit = now + patience;
    least = std::min(least, now_left);
    if (now > limit) return false;
    // Counting takes a tenth of the time: who counts all the time is who holds up the others.
    pass(std::max(milliseconds{50}, 9 * std::chrono::ceil<milliseconds>(now - began)));
    if (beside) beside();
  }
}

void World::pace_lines() {
  for (test::TcpProxy* const line : {&proxy, &own_line}) {
    line->delay(milliseconds{settings.latency_ms});
    line->limit(settings.line_bytes);
  }
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
