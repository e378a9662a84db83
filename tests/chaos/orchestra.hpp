// Starts everything, does harm to it by a schedule that the seed draws, heals it, and lets it
// drain.
#pragma once

#include "chaos/child.hpp"
#include "chaos/settings.hpp"
#include "nats/jetstream.hpp"
#include "support/nats_server.hpp"
#include "support/tcp_proxy.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace stela::chaos {

class Orchestra {
 public:
  explicit Orchestra(const Settings& settings);

  /// False if it didn't drain in time; `problems` says what else went wrong.
  bool play();

  test::NatsServer& server() noexcept { return server_; }
  int faults() const noexcept { return faults_; }
  const std::map<std::string, int>& faults_by_kind() const noexcept { return by_kind_; }
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  using Steady = std::chrono::steady_clock::time_point;
  using Kind = std::string;

  struct Member {
    std::string role;
    std::unique_ptr<Child> child;
    bool stopped = false;
    /// Not there for a while.
    bool away = false;
  };

  void make_databases();
  void start(Member& member);
  int favourite() const;
  void strike();
  void later(std::chrono::milliseconds wait, std::function<void()> action);
  void run_actions();
  void look_after_members();
  void pass(std::chrono::milliseconds time);
  void heal();
  bool drain();
  std::int64_t waiting();
  std::int64_t number_in(const std::string& database, const std::string& sql);

  // Faults.
  Member& any(const std::string& role);
  void kill(const std::string& role);
  void suspend(const std::string& role);
  void leave_and_return();
  void kill_broker();
  void pause_broker();
  class Standstill;
  bool limit_streams(std::int64_t more);
  void squeeze_broker();
  void widen_broker();
  void keep_busy();
  void resize();

  std::chrono::milliseconds between(int least, int most);
  void note(const Kind& kind, const std::string& detail = {});

  const Settings& settings_;
  std::mt19937_64 random_;
  test::NatsServer server_;
  test::TcpProxy proxy_;
  std::vector<Member> members_;
  std::multimap<Steady, std::function<void()>> actions_;
  std::map<std::string, int> by_kind_;
  std::vector<std::string> problems_;
  Steady begun_ = std::chrono::steady_clock::now();
  Steady quiet_until_{};
  int faults_ = 0;
  bool healing_ = false;
  bool broker_down_ = false;
};

}  // namespace stela::chaos
