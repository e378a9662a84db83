#include "chaos/members.hpp"

#include <signal.h>

#include <utility>

namespace stela::chaos {

Members::Members(const Settings& settings, std::string url)
    : settings_{settings}, url_{std::move(url)} {}

void Members::add(const std::string& role, int count, const std::string& own_line) {
  for (int i = 0; i < count; ++i) {
    members_.push_back({.role = role,
                        .number = static_cast<int>(members_.size()),
                        .url = own_line.empty() ? url_ : own_line});
    start(members_.back());
  }
}

void Members::start(Member& member, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--role",    member.role,
                                     "--folder",  settings_.folder,
                                     "--url",     member.url,
                                     "--number",  std::to_string(member.number),
                                     "--seed",    std::to_string(settings_.seed),
                                     "--seconds", std::to_string(settings_.seconds),
                                     "--kinds",   settings_.kinds_option(),
                                     "--servers", std::to_string(settings_.servers),
                                     "--mutant",  std::string{to_string(settings_.mutant)}};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::string host;
  if (settings_.is_on_postgres()) {
    host = "machine-" + std::to_string(member.number % Settings::machines);
    arguments.insert(arguments.end(), {"--engine", "postgres"});
  }
  member.child = std::make_unique<Child>(std::move(arguments),
                                         settings_.folder + "/" + member.role + ".log", host);
  member.stopped = member.away = member.dies = false;
}

void Members::start_to_die(Member& member, const std::string& death) {
  start(member, {"--dies", death});
  member.dies = true;
}

void Members::look_after(std::vector<std::string>& problems) {
  for (Member& member : members_) {
    if (member.away || !member.child || member.child->is_running()) continue;
    const int result = member.child->result();
    if (!member.dies || result != 128 + SIGKILL) {
      problems.push_back(member.role + " ended by itself with " + std::to_string(result) +
                         "; see " + member.role + ".log");
    }
    start(member);
  }
}

void Members::stop(const std::string& role, std::vector<std::string>& problems) {
  for (Member& member : members_) {
    if (member.role != role || !member.child || member.away) continue;
    member.away = true;
    const int result = member.child->stop();
    // It may have come to its own end first.
    if (result == 0 || (member.dies && result == 128 + SIGKILL)) continue;
    problems.push_back(role + " was told to stop and ended with " + std::to_string(result));
  }
}

Member& Members::any(const std::string& role, std::mt19937_64& random) {
  std::vector<Member*> found;
  for (Member& member : members_) {
    if (member.role == role) found.push_back(&member);
  }
  return *found[random() % found.size()];
}

}  // namespace stela::chaos
