// What networks do to connections; all of it through the proxy.
#include "chaos/faults.hpp"

namespace stela::chaos {

using namespace std::chrono_literals;
using Direction = test::TcpProxy::Direction;

namespace {

Direction any_direction(World& world) {
  return world.once_in(2) ? Direction::requests : Direction::answers;
}

std::string name_of(Direction direction) {
  return direction == Direction::requests ? "requests" : "answers";
}

void delay(World& world) {
  world.proxy.delay(world.between(1, 60));
  world.agenda.later(world.between(200, 1'200), [&world] { world.pace_lines(); });
  world.note("delay");
}

/// A line that is slow in one direction.
void narrow(World& world) {
  const Direction direction = any_direction(world);
  world.proxy.delay(direction, world.between(1, 60));
  world.proxy.limit(direction, 50'000 + static_cast<int>(world.random() % 450'000));
  world.late_until = std::max(world.late_until, std::chrono::steady_clock::now() + 5s);
  world.agenda.later(world.between(200, 1'200), [&world] { world.pace_lines(); });
  world.note("narrow", name_of(direction));
}

void slice(World& world) {
  world.proxy.slice(static_cast<int>(1 + world.random() % 40));
  world.agenda.later(world.between(100, 400), [&world] { world.proxy.slice(0); });
  world.note("slice");
}

void cut(World& world) {
  world.proxy.cut();
  if (world.once_in(2)) {
    world.proxy.refuse(true);
    world.agenda.later(world.between(100, 1'000), [&world] { world.proxy.refuse(false); });
  }
  world.note("cut");
}

/// One relay can't reach the broker, and the others can.
void cut_off(World& world) {
  world.own_line.refuse(true);
  world.own_line.cut();
  world.agenda.later(world.between(500, 8'000), [&world] { world.own_line.refuse(false); });
  world.note("cut off");
}

void half_open(World& world) {
  world.proxy.half_open();
  world.note("half open");
}

/// One direction is dead: what is sent there is lost, or held up for a while.
void one_way(World& world) {
  const Direction direction = any_direction(world);
  if (world.once_in(2)) {
    world.proxy.lose(direction);
    return world.note("one way, lost", name_of(direction));
  }
  const auto time = world.between(300, 3'000);
  world.proxy.hold(direction);
  world.late_until = std::max(world.late_until, std::chrono::steady_clock::now() + time + 1s);
  world.agenda.later(time, [&world] { world.proxy.release(); });
  world.note("one way, held", name_of(direction));
}

/// Connections that are made now get the server's INFO and nothing more.
void silent_broker(World& world) {
  world.proxy.fall_silent(true);
  world.proxy.cut();
  world.agenda.later(world.between(300, 2'500), [&world] { world.proxy.fall_silent(false); });
  world.note("silent broker");
}

void late_bytes(World& world) {
  world.proxy.linger(world.between(1'800, 3'000));
  world.late_until = std::chrono::steady_clock::now() + 5s;
  world.note("late bytes");
}

}  // namespace

std::vector<Fault> network_faults() {
  return {{"delay", 1, delay},          {"narrow", 1, narrow},
          {"slice", 1, slice},          {"cut", 1, cut},
          {"cut-off", 1, cut_off},      {"half-open", 1, half_open},
          {"one-way", 1, one_way},      {"silent-broker", 1, silent_broker},
          {"late-bytes", 2, late_bytes}};
}

}  // namespace stela::chaos
