// A broker that dies, hangs, or is full.
#include "chaos/faults.hpp"
#include "nats/jetstream.hpp"

#include <poll.h>
#include <signal.h>

#include <utility>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

void kill_broker(World& world) {
  if (std::exchange(world.is_broker_down, true)) return;
  world.server.kill();
  world.agenda.later(world.between(0, 1'500), [&world] {
    world.server.start_again();
    world.is_broker_down = false;
  });
  world.note("kill the broker");
}

void pause_broker(World& world) {
  if (std::exchange(world.is_broker_down, true)) return;
  world.server.pause();
  world.agenda.later(world.between(100, 2'500), [&world] {
    world.server.resume();
    world.is_broker_down = false;
  });
  world.note("pause the broker");
}

/// Stops the relays, until what they sent has arrived and longer.
class Standstill {
 public:
  explicit Standstill(Members& members) {
    for (Member& member : members.all()) {
      if (member.role != "relay" || member.away || member.stopped) continue;
      member.child->signal(SIGSTOP);
      stopped_.push_back(member.child.get());
    }
    poll(nullptr, 0, 50);
  }
  ~Standstill() {
    for (const Child* const child : stopped_) child->signal(SIGCONT);
  }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  std::vector<const Child*> stopped_;
};

/// Each stream takes so many more messages; -1: any number. False if the broker isn't there.
bool limit_streams(World& world, std::int64_t more) {
  if (world.is_broker_down) return false;
  // A limit below what is there would delete messages, so nobody publishes meanwhile.
  const Standstill standstill{world.members};
  try {
    test::JetStream broker{world.server.url()};
    for (const std::string& stream : broker.streams()) {
      const auto most = more < 0 ? -1 : broker.count(stream) + more;
      broker.update_stream(stream, [&](jsStreamConfig& config) { config.MaxMsgs = most; });
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void widen_broker(World& world) {
  if (limit_streams(world, -1)) return;
  world.agenda.later(100ms, [&world] { widen_broker(world); });
}

void fill_broker(World& world) {
  // Late bytes must not be under way either.
  const bool is_late = std::chrono::steady_clock::now() < world.late_until;
  if (is_late || !limit_streams(world, 200)) return;
  world.agenda.later(world.between(200, 1'000), [&world] { widen_broker(world); });
  world.note("fill the broker");
}

/// Somebody changes what Stela has no opinion on.
void edit_streams(World& world) {
  if (world.is_broker_down) return;
  const std::int64_t age = world.between(1, 24) / 1ms * std::int64_t{3'600'000'000'000};
  try {
    test::JetStream broker{world.server.url()};
    for (const std::string& stream : broker.streams()) {
      broker.update_stream(stream, [&](jsStreamConfig& config) { config.MaxAge = age; });
    }
  } catch (const std::exception&) {
    return;
  }
  world.note("edit the streams");
}

void edit_consumers(World& world) {
  if (world.is_broker_down) return;
  const std::int64_t pending = world.between(100, 2'000) / 1ms;
  try {
    test::JetStream broker{world.server.url()};
    for (const std::string& stream : broker.streams()) {
      broker.update_consumer(stream, "effects",
                             [&](jsConsumerConfig& config) { config.MaxAckPending = pending; });
    }
  } catch (const std::exception&) {
    return;
  }
  world.note("edit the consumers");
}

}  // namespace

std::vector<Fault> broker_faults() {
  return {{"edit-streams", 1, edit_streams},
          {"edit-consumers", 1, edit_consumers},
          {"kill-broker", 1, kill_broker},
          {"pause-broker", 1, pause_broker},
          {"fill-broker", 1, fill_broker}};
}

}  // namespace stela::chaos
