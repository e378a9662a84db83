// Wall clocks that jump.
#include "chaos/faults.hpp"
#include "chaos/jumping_clock.hpp"

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

/// One process sees another hour than the rest for a while.
void jump(World& world) {
  const Member& victim = world.members.all()[world.random() % world.members.all().size()];
  const std::string file = world.settings.clock_of(victim.number);
  const std::chrono::minutes by = world.between(1, 12 * 60) / 1ms * 1min;
  const auto ahead = world.once_in(2) ? by : -by;
  JumpingClock{file}.set_ahead(ahead);
  const auto usual = world.settings.skew_of(victim.number);
  world.agenda.later(world.between(500, 6'000),
                     [file, usual] { JumpingClock{file}.set_ahead(usual); });
  world.note("clock jump", victim.role + " by " + std::to_string(ahead.count()) + " minutes");
}

}  // namespace

std::vector<Fault> clock_faults() {
  return {{"clock-jump", 2, jump}};
}

}  // namespace stela::chaos
