// What harm is done to: processes, a broker, the network between them, and files.
#pragma once

#include "chaos/agenda.hpp"
#include "chaos/deletions.hpp"
#include "chaos/members.hpp"
#include "chaos/server.hpp"
#include "chaos/settings.hpp"
#include "support/nats_cluster.hpp"
#include "support/small_disk.hpp"
#include "support/tcp_proxy.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace stela::chaos {

class World {
 public:
  /// Makes the databases, and starts everybody. The broker may keep its streams on a small disk.
  World(const Settings& settings, bool small_broker_disk);

  /// Lets them work for so long, and does what the agenda says.
  void pass(std::chrono::milliseconds time);
  /// Waits for it as `pass` does; false if it doesn't come about in time.
  bool pass_until(const std::function<bool()>& condition, std::chrono::milliseconds limit);
  /// Waits until nothing is left, and does `beside` meanwhile. False if what is left doesn't get
  /// less for as long as `patience`, however slow the machine is.
  bool falls_to_zero(const std::function<std::int64_t()>& left, std::chrono::seconds patience,
                     const std::function<void()>& beside = {});
  /// Into the log of faults, and counted.
  void note(const std::string& kind, const std::string& detail = {});

  std::chrono::milliseconds between(int least, int most);
  /// The lines are as slow as the settings have it, and no slower.
  void pace_lines();
  /// True once in so many times.
  bool once_in(int times) { return random() % static_cast<unsigned>(times) == 0; }

  const Settings& settings;
  std::mt19937_64 random;
  /// Null where there is none, or none can be mounted. Made before there are threads.
  const std::unique_ptr<test::SmallDisk> disk;
  const std::unique_ptr<test::SmallDisk> broker_disk;
  /// Null on SQLite.
  const std::unique_ptr<Server> server;
  test::NatsCluster broker;
  test::TcpProxy proxy;
  /// One relay's; the others reach the broker when it doesn't.
  test::TcpProxy own_line;
  Members members;
  Agenda agenda;
  /// A server is dead or stopped, or hasn't caught up since.
  bool is_broker_down = false;
  bool is_disk_full = false;
  /// Late bytes may be under way until then.
  std::chrono::steady_clock::time_point late_until = {};
  std::vector<Deletion> deletions;
  std::map<std::string, int> by_kind;
  int faults = 0;
  std::vector<std::string> problems;

 private:
  void make_disk() const;
  void make_databases();

  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace stela::chaos
