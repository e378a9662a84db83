// A broker whose disk is full.
#include "chaos/phases.hpp"
#include "chaos/phases/scene.hpp"

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

/// More than there is room for.
constexpr int many = 600;
constexpr std::size_t bytes_left = 100'000;

/// What the broker acknowledged and then hadn't kept is adopted, as often as there is something.
void settle(World& world, Scene& scene) {
  for (int i = 0; i < 3; ++i) {
    scene.expect("nothing goes on once the broker has space",
                 [&] { return scene.waiting() == 0 || !scene.stopped().empty(); });
    const std::vector<PartitionStatus> stopped = scene.stopped();
    if (stopped.empty()) break;
    world.note("stopped after a full disk",
               std::string{to_string(stopped.front().stopped.value())});
    scene.adopt(stopped);
  }
  scene.drains("what waited for a full broker isn't published");
  scene.compare(Mode::carry_out);
  scene.drains("what a full broker lost isn't sent again");
}

}  // namespace

void fill_broker_disk(World& world) {
  if (!world.broker_disk) return;
  Scene scene{world, world.settings};
  scene.start_relays();
  world.note("full disk of the broker's");
  world.broker_disk->fill_up(bytes_left);
  scene.append(many);
  world.pass(2s);
  if (scene.waiting() == 0) world.problems.emplace_back("a full disk of the broker's is no fault");

  world.broker_disk->make_room();
  // It has given JetStream up until then.
  world.broker.server(0).kill();
  world.broker.server(0).start_again();
  settle(world, scene);
  scene.stop_relays();
  scene.require_all("a database whose broker was full");
}

}  // namespace stela::chaos
