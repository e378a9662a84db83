// A broker that dies, hangs, is full, changes its leaders, or loses a message.
#include "chaos/faults.hpp"
#include "chaos/shop.hpp"
#include "nats/jetstream.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

using Steady = std::chrono::steady_clock;

constexpr auto healing_limit = 60s;

/// A server was started or resumed. No other one is harmed before it has caught up: what a cluster
/// acknowledged is on two servers of three, and must be on two that live.
void wait_until_whole(World& world, Steady::time_point limit) {
  if (world.broker.heals(20ms)) {
    world.is_broker_down = false;
  } else if (Steady::now() < limit) {
    world.agenda.later(100ms, [&world, limit] { wait_until_whole(world, limit); });
  } else {
    world.is_broker_down = false;
    world.problems.emplace_back("a nats-server doesn't catch up");
  }
}

void kill_broker(World& world, test::NatsServer& server) {
  world.is_broker_down = true;
  server.kill();
  world.agenda.later(world.between(0, 1'500), [&world, &server] {
    server.start_again();
    wait_until_whole(world, Steady::now() + healing_limit);
  });
}

test::NatsServer& any_server(World& world) {
  return world.broker.server(world.random() % world.broker.size());
}

void kill_broker(World& world) {
  if (world.is_broker_down) return;
  kill_broker(world, any_server(world));
  world.note("kill the broker");
}

void pause_broker(World& world) {
  if (std::exchange(world.is_broker_down, true)) return;
  test::NatsServer& server = any_server(world);
  server.pause();
  world.agenda.later(world.between(100, 2'500), [&world, &server] {
    server.resume();
    wait_until_whole(world, Steady::now() + healing_limit);
  });
  world.note("pause the broker");
}

/// Any stream that there is; empty if there is none.
std::string any_stream(World& world, test::JetStream& broker) {
  const std::vector<std::string> streams = broker.streams();
  return streams.empty() ? std::string{} : streams[world.random() % streams.size()];
}

/// Of a stream; its followers must elect another one.
void kill_leader(World& world) {
  if (world.is_broker_down) return;
  try {
    test::JetStream broker{world.broker.url()};
    const std::string stream = any_stream(world, broker);
    const std::string leader = stream.empty() ? stream : broker.leader_of(stream);
    if (leader.empty()) return;
    kill_broker(world, world.broker.server(leader));
    world.note("kill a leader", leader + " of " + stream);
  } catch (const std::runtime_error&) {
    // It can't be asked now.
  }
}

/// The leader of a stream, or of its consumer, hands over to another server.
void step_down(World& world) {
  if (world.is_broker_down) return;
  try {
    test::JetStream broker{world.broker.url()};
    const std::string stream = any_stream(world, broker);
    if (stream.empty()) return;
    if (broker.step_down(stream)) world.note("step down", stream);
  } catch (const std::runtime_error&) {
    // It can't be asked now.
  }
}

/// Until it is certain that the message is gone.
void erase(World& world, const Deletion& deletion) {
  try {
    test::JetStream broker{world.broker.url()};
    if (broker.message(deletion.broker_stream, deletion.broker_sequence)) {
      broker.erase(deletion.broker_stream, deletion.broker_sequence);
    }
    world.deletions.push_back(deletion);
  } catch (const std::runtime_error&) {
    world.agenda.later(200ms, [&world, deletion] { erase(world, deletion); });
  }
}

/// One that counts as published. Not the first of its stream: a broker that drops what is old
/// leaves the same behind.
void delete_message(World& world) {
  if (world.is_broker_down) return;
  try {
    test::JetStream broker{world.broker.url()};
    const std::string stream = any_stream(world, broker);
    const std::uint64_t last = stream.empty() ? 0 : broker.last_sequence(stream);
    if (last < 2) return;
    const std::uint64_t at = last - world.random() % std::min<std::uint64_t>(last - 1, 30);
    const auto message = broker.message(stream, at);
    if (!message) return;
    const Deletion deletion{.broker_stream = stream,
                            .broker_sequence = at,
                            .event = std::stoll(message->headers.at("Stela-Sequence")),
                            .event_id = message->headers.at("ce-id")};
    const auto waits =
        shop_number(world.settings, "SELECT count(*) FROM outbox_messages WHERE sequence = " +
                                        std::to_string(deletion.event));
    if (waits > 0) return;
    erase(world, deletion);
    world.note("delete a message",
               stream + " at " + std::to_string(at) + ": event " + std::to_string(deletion.event));
  } catch (const std::runtime_error&) {
    // It can't be asked now.
  }
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
    test::JetStream broker{world.broker.url()};
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
    test::JetStream broker{world.broker.url()};
    for (const std::string& stream : broker.streams()) {
      broker.update_stream(stream, [&](jsStreamConfig& config) { config.MaxAge = age; });
    }
  } catch (const std::exception&) {
    return;
  }
  world.note("edit the streams");
}

void delete_consumers(World& world) {
  if (world.is_broker_down) return;
  try {
    test::JetStream broker{world.broker.url()};
    for (const std::string& stream : broker.streams()) {
      for (const std::string& consumer : broker.consumers(stream)) {
        broker.delete_consumer(stream, consumer);
      }
    }
  } catch (const std::exception&) {
    return;
  }
  world.note("delete the consumers");
}

}  // namespace

std::vector<Fault> broker_faults() {
  const auto is_cluster = [](const Settings& settings) { return settings.servers > 1; };
  return {{"edit-streams", 1, edit_streams},
          {"delete-consumers", 1, delete_consumers},
          {"kill-broker", 1, kill_broker},
          {"pause-broker", 1, pause_broker},
          {"fill-broker", 1, fill_broker},
          {"kill-leader", 2, kill_leader, is_cluster},
          {"step-down", 2, step_down, is_cluster},
          {"delete-message", 4, delete_message,
           [](const Settings& settings) { return settings.deletes; }}};
}

}  // namespace stela::chaos
