// The processes of a run.
#pragma once

#include "chaos/child.hpp"
#include "chaos/settings.hpp"

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace stela::chaos {

struct Member {
  std::string role;
  int number = 0;
  /// By which it reaches the broker.
  std::string url = {};
  std::unique_ptr<Child> child = {};
  bool stopped = false;
  /// Not there for a while.
  bool away = false;
  /// It was started to kill itself.
  bool dies = false;
};

class Members {
 public:
  /// They reach the broker by `url`, unless they have a line of their own.
  Members(const Settings& settings, std::string url);

  void add(const std::string& role, int count, const std::string& own_line = {});
  void start(Member& member, const std::vector<std::string>& more = {});
  /// As `start`, for an appender that kills itself at `death`, as the option --dies has it.
  void start_to_die(Member& member, const std::string& death);
  /// Starts those again that ended by themselves, and says so unless they were to.
  void look_after(std::vector<std::string>& problems);
  /// All of a role's, to the end; says who didn't end well.
  void stop(const std::string& role, std::vector<std::string>& problems);

  Member& any(const std::string& role, std::mt19937_64& random);
  std::deque<Member>& all() noexcept { return members_; }

 private:
  const Settings& settings_;
  const std::string url_;
  /// Actions keep references.
  std::deque<Member> members_;
};

}  // namespace stela::chaos
