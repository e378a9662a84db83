// Copies of a database: one that is at work beside it, and an older one that takes its place, by a
// restore or by a failover.
#include "chaos/phases.hpp"
#include "chaos/phases/scene.hpp"
#include "chaos/roles.hpp"

#include <algorithm>
#include <filesystem>

namespace stela::chaos {

namespace fs = std::filesystem;

namespace {

/// So many appends reach every partition.
constexpr int some = 60;

/// The partitions whose last message is of an event that the database doesn't
/// have.
std::set<std::string> overtaken(const Scene& scene, const Contents& broker) {
  const std::set<std::string> known = scene.ids();
  std::set<std::string> places;
  for (const PartitionStatus& each : scene.status().partitions) {
    const auto found = broker.find(scene.place_of(each.id));
    if (found == broker.end() || found->second.empty()) continue;
    if (!known.contains(found->second.back().headers.at("ce-id"))) places.insert(found->first);
  }
  return places;
}

/// Waits until all of these partitions are stopped for the reason that there
/// is.
bool stops(Scene& scene, const std::set<std::string>& places, const std::string& problem) {
  return scene.expect(problem, [&] {
    std::set<std::string> stopped;
    for (const PartitionStatus& each : scene.stopped()) {
      if (each.stopped == StopReason::store_went_back) stopped.insert(scene.place_of(each.id));
    }
    return std::includes(stopped.begin(), stopped.end(), places.begin(), places.end());
  });
}

Contents only(const Contents& contents, const std::set<std::string>& places) {
  Contents some_of_it;
  for (const auto& [place, messages] : contents) {
    if (places.contains(place)) some_of_it.emplace(place, messages);
  }
  return some_of_it;
}

bool are_same(const Contents& one, const Contents& other) {
  return goes_on_from(one, other) && goes_on_from(other, one);
}

/// The database lacks events that the broker had before it came: its partitions stop, and continue
/// when the broker is adopted. `what` is its name in a problem.
void come_back(Scene& scene, World& world, const Contents& before, const std::string& what) {
  scene.append(some);
  const std::set<std::string> places = overtaken(scene, before);
  world.note(what, std::to_string(places.size()) + " partitions behind");
  scene.start_relays();
  if (!stops(scene, places, what + " isn't stopped")) return;
  if (!are_same(only(before, places), only(scene.contents(), places))) {
    world.problems.push_back(what + " was published from before it was adopted");
  }

  scene.adopt(scene.stopped());
  scene.drains(what + " doesn't go on when it is adopted");
  scene.stop_relays();
  if (!goes_on_from(before, scene.contents())) {
    world.problems.push_back(what + " changed what stood in the streams");
  }
  scene.require_all(what);
}

}  // namespace

void clone_database(World& world) {
  Scene original{world, world.settings};
  original.append(some);
  original.start_relays();
  if (!original.drains("the original doesn't drain")) return;

  Settings settings = world.settings;
  settings.folder += "/clone";
  fs::create_directories(fs::path{settings.database()}.parent_path());
  fs::copy_file(world.settings.backup(), settings.database());
  Scene clone{world, settings};
  clone.append(some);
  const Contents before = original.contents();
  const std::set<std::string> places = overtaken(clone, before);
  world.note("cloned database", std::to_string(places.size()) + " partitions behind");
  clone.start_relays();
  if (!stops(clone, places, "a clone isn't stopped")) return;
  if (!are_same(only(before, places), only(original.contents(), places))) {
    world.problems.emplace_back("a clone published into the original's streams");
  }

  original.append(some);
  original.drains("the original doesn't go on beside its clone");
  clone.stop_relays();
  original.stop_relays();
  if (!goes_on_from(before, original.contents())) {
    world.problems.emplace_back("a clone changed what stood in the streams");
  }
  original.require_all("the original");
}

void restore_database(World& world) {
  for (const char* const suffix : {"", "-wal", "-shm"}) {
    fs::remove(world.settings.database() + suffix);
  }
  fs::copy_file(world.settings.backup(), world.settings.database());
  Scene scene{world, world.settings};
  come_back(scene, world, scene.contents(), "a restored database");
}

void fail_over(World& world) {
  world.server->cut_replication();
  Scene scene{world, world.settings};
  scene.append(some);
  scene.start_relays();
  if (!scene.drains("a server without a standby doesn't drain")) return;
  const Contents before = scene.contents();
  world.server->promote();
  come_back(scene, world, before, "a standby that lacks commits");
}

}  // namespace stela::chaos
