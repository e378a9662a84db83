// Several real nats-servers that are one cluster, for the length of a test.
#pragma once

#include "support/nats_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace stela::test {

/// A loopback port that nobody else is given as long as this lives. A server can listen on it, and
/// again after it was killed.
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

/// Servers with JetStream, called n0, n1, …; each has its name as a tag, so that a stream can be
/// placed on it. They listen on loopback and tell their clients nothing of each other. A cluster of
/// one is a server alone.
/// Threads: one at a time.
class NatsCluster {
 public:
  /// Returns when they have a leader for what is common to them; throws if they don't find one in
  /// time. `config` is added to the configuration of each, as NatsServer has it.
  explicit NatsCluster(std::size_t size = 3, const std::string& config = {});
  ~NatsCluster();
  NatsCluster(const NatsCluster&) = delete;
  NatsCluster& operator=(const NatsCluster&) = delete;

  std::size_t size() const noexcept { return servers_.size(); }
  NatsServer& server(std::size_t index) { return *servers_.at(index); }
  /// By the name that the cluster gave it; throws if there is none.
  NatsServer& server(const std::string& name);
  static std::string name_of(std::size_t index) { return 'n' + std::to_string(index); }

  /// All of them, as a client is given them.
  std::string url() const;
  std::vector<int> ports() const;

  /// Whether each of them runs and has caught up with the others in all that it stores.
  bool is_healthy() const;
  /// Waits for it; false if it takes too long.
  bool heals(std::chrono::milliseconds limit = std::chrono::seconds{30}) const;

 private:
  std::string config_of(std::size_t index) const;

  /// Of routes between servers, and of what they say of themselves.
  std::vector<std::unique_ptr<HeldPort>> routes_;
  std::vector<std::unique_ptr<HeldPort>> monitors_;
  std::vector<std::unique_ptr<NatsServer>> servers_;
};

}  // namespace stela::test
