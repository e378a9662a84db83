// Several real nats-servers in one cluster, for the length of a test.
#pragma once

#include "support/nats_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace stela::test {

/// A loopback port that is reserved while this lives. A server can listen on it, also again after
/// it was killed.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int number() const noexcept { return number_; }

 private:
  int socket_ = -1;
  int number_ = 0;
};

/// Servers with JetStream, called n0, n1, …. Each has its name as a tag, so that a stream can be
/// placed on it. They listen on loopback and don't tell clients about each other. A cluster of one
/// is a single server. Threads: one at a time.
class NatsCluster {
 public:
  /// Returns when they have elected a leader for the cluster; throws if they don't in time.
  /// `config` is added to each configuration, as in NatsServer.
  explicit NatsCluster(std::size_t size = 3, const std::string& config = {});
  ~NatsCluster();
  NatsCluster(const NatsCluster&) = delete;
  NatsCluster& operator=(const NatsCluster&) = delete;

  std::size_t size() const noexcept { return servers_.size(); }
  NatsServer& server(std::size_t index) { return *servers_.at(index); }
  /// By its name in the cluster. Throws if there is none.
  NatsServer& server(const std::string& name);
  static std::string name_of(std::size_t index) { return 'n' + std::to_string(index); }

  /// The URL of the whole cluster, for a client.
  std::string url() const;
  std::vector<int> ports() const;

  /// True if all servers run and have caught up with the others' data.
  bool is_healthy() const;
  /// Waits until the cluster is healthy. False if that takes too long.
  bool heals(std::chrono::milliseconds limit = std::chrono::seconds{30}) const;

 private:
  std::string config_of(std::size_t index) const;

  /// The ports of routes between servers, and of their monitoring.
  std::vector<std::unique_ptr<HeldPort>> routes_;
  std::vector<std::unique_ptr<HeldPort>> monitors_;
  std::vector<std::unique_ptr<NatsServer>> servers_;
};

}  // namespace stela::test
