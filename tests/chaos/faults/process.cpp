// Processes that are killed, paused, or leave.
#include "chaos/faults.hpp"

#include <signal.h>

namespace stela::chaos {
namespace {

void kill(World& world, const std::string& role) {
  Member& victim = world.members.any(role, world.random);
  if (victim.away) return;
  victim.child->kill();
  victim.away = true;
  world.agenda.later(world.between(0, 800), [&world, &victim] { world.members.start(victim); });
  world.note("kill", role);
}

void pause(World& world, const std::string& role) {
  Member& victim = world.members.any(role, world.random);
  if (victim.away || victim.stopped) return;
  victim.child->signal(SIGSTOP);
  victim.stopped = true;
  const bool past_its_lease = world.once_in(2);
  const auto time = past_its_lease ? world.between(2'200, 4'000) : world.between(50, 1'500);
  world.agenda.later(time, [&victim] {
    victim.stopped = false;
    if (victim.child) victim.child->signal(SIGCONT);
  });
  world.note(past_its_lease ? "pause past the lease" : "pause", role);
}

void leave_and_return(World& world) {
  Member& victim = world.members.any("relay", world.random);
  if (victim.away || victim.stopped) return;
  victim.child->signal(SIGTERM);
  victim.away = true;
  world.agenda.later(world.between(500, 3'000), [&world, &victim] {
    victim.child->kill();
    world.members.start(victim);
  });
  world.note("leave and return", "relay");
}

/// An appender that is hard-killed after a commit, before it knows of it.
void die_unanswered(World& world) {
  Member& victim = world.members.any("append", world.random);
  if (victim.away || victim.stopped || victim.dies) return;
  const bool in_log = world.once_in(2) && !world.settings.is_on_postgres();
  std::string death = in_log ? "log:" : "answer:";
  death += std::to_string(1 + world.random() % (in_log ? 200 : 20));
  victim.child->kill();
  world.members.start_to_die(victim, death);
  world.note("die unanswered", death);
}

bool has_deadlines(const Settings& settings) {
  return settings.has_deadlines();
}

}  // namespace

std::vector<Fault> process_faults() {
  return {{"kill-relay", 3, [](World& world) { kill(world, "relay"); }},
          {"kill-appender", 1, [](World& world) { kill(world, "append"); }},
          {"die-unanswered", 2, die_unanswered},
          {"kill-consumer", 1, [](World& world) { kill(world, "consume"); }},
          {"kill-reminder", 1, [](World& world) { kill(world, "remind"); }, has_deadlines},
          {"pause-reminder", 1, [](World& world) { pause(world, "remind"); }, has_deadlines},
          {"pause-relay", 2, [](World& world) { pause(world, "relay"); }},
          {"pause-consumer", 1, [](World& world) { pause(world, "consume"); }},
          {"leave-and-return", 1, leave_and_return}};
}

}  // namespace stela::chaos
