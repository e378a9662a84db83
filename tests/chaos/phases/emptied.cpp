// A broker that loses what it had acknowledged.
#include "chaos/phases.hpp"
#include "chaos/phases/scene.hpp"

#include <algorithm>
#include <filesystem>

namespace stela::chaos {
namespace {

constexpr int emptied_some = 60;

std::string lose_streams(World& world) {
  if (world.once_in(2)) {
    test::JetStream broker{world.broker.url()};
    for (const std::string& stream : broker.streams()) broker.delete_stream(stream);
    return "deleted";
  }
  for (std::size_t i = 0; i < world.broker.size(); ++i) world.broker.server(i).kill();
  for (std::size_t i = 0; i < world.broker.size(); ++i) {
    std::filesystem::remove_all(world.broker.server(i).folder() + "/jetstream");
    world.broker.server(i).start_again();
  }
  if (!world.broker.heals()) world.problems.emplace_back("an emptied cluster finds no leader");
  return "its folder was removed";
}

/// Partitions that published and are at work must say that it is gone; then
/// they are adopted.
bool loss_is_said(World& world, Scene& scene) {
  if (world.settings.fence == Fence::none) return true;
  const auto is_lost = [](const PartitionStatus& each) {
    return each.stopped == StopReason::broker_lost;
  };
  const bool stopped = scene.expect("a loss of the broker's isn't noticed", [&] {
    const std::vector<PartitionStatus> all = scene.status().partitions;
    return std::all_of(all.begin(), all.end(), [&](const PartitionStatus& each) {
      return each.broker_sequence == 0 || !each.is_current || is_lost(each);
    });
  });
  if (!stopped) return false;
  const Contents contents = scene.contents();
  for (const PartitionStatus& each : scene.stopped()) {
    if (!contents.contains(scene.place_of(each.id))) continue;
    world.problems.push_back("something was published behind a hole in " + each.id.label());
  }
  scene.adopt(scene.stopped());
  return true;
}

/// Consumers meet new streams, with what they have handled before and what they haven't.
void require_effects(World& world, Scene& scene) {
  for (Member& member : world.members.all()) {
    if (member.role == "consume") world.members.start(member);
  }
  const auto wanted = static_cast<std::int64_t>(scene.ids().size());
  const auto count = [&](const char* what) {
    return effect_number(world.settings,
                         std::string{"SELECT count("}.append(what).append(") FROM effects"));
  };
  scene.ends("effects are missing after a loss", [&] { return wanted - count("DISTINCT id"); });
  world.members.stop("consume", world.problems);
  if (count("id") > wanted) world.problems.emplace_back("an effect happened twice after a loss");
}

}  // namespace

void empty_broker(World& world) {
  Scene scene{world, world.settings};
  const auto published = static_cast<std::int64_t>(copies_in(scene.contents()).size());
  world.note("emptied broker", lose_streams(world));
  scene.append(emptied_some);
  scene.start_relays();
  if (!loss_is_said(world, scene)) return;
  if (!scene.drains("nothing goes on behind a loss that was adopted")) return;

  if (const Compared found = scene.compare(Mode::dry_run); found.missing != published) {
    world.problems.push_back("of " + std::to_string(published) + " lost events " +
                             std::to_string(found.missing) + " are missed");
  }
  scene.compare(Mode::carry_out);
  scene.drains("what was lost isn't sent again");
  scene.stop_relays();

  scene.require_all("a database whose broker was emptied");
  require_effects(world, scene);
}

}  // namespace stela::chaos
