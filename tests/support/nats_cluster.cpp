#include "support/nats_cluster.hpp"

#include "support/loopback.hpp"
#include "support/process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace stela::test {
namespace {

/// True if the server reports that it is healthy. A stopped server doesn't answer.
bool says_that_it_is_well(int port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{.tv_sec = 0, .tv_usec = 500'000};
  setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const sockaddr_in address = loopback(port);
  constexpr std::string_view request = "GET /healthz HTTP/1.0\r\n\r\n";
  char status[16] = {};
  const bool answers =
      connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(file, request.data(), request.size(), MSG_NOSIGNAL) > 0 &&
      recv(file, status, sizeof status - 1, MSG_WAITALL) > 0;
  close(file);
  return answers && std::string_view{status}.find(" 200 ") != std::string_view::npos;
}

}  // namespace

// --- ports

/// Bound, but never listening: with SO_REUSEADDR on both sides a server may listen there, and the
/// system gives the port to no other program.
HeldPort::HeldPort() : socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
  const int on = 1;
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(socket_);
    throw std::runtime_error{"there is no free port"};
  }
  number_ = ntohs(address.sin_port);
}

HeldPort::~HeldPort() {
  close(socket_);
}

// --- the cluster

NatsCluster::NatsCluster(std::size_t size, const std::string& config) {
  for (std::size_t i = 0; i < size; ++i) {
    routes_.push_back(std::make_unique<HeldPort>());
    monitors_.push_back(std::make_unique<HeldPort>());
  }
  for (std::size_t i = 0; i < size; ++i) {
    servers_.push_back(std::make_unique<NatsServer>(config_of(i) + config));
  }
  if (!heals()) throw std::runtime_error{"the nats-servers found no leader"};
}

NatsCluster::~NatsCluster() = default;

std::string NatsCluster::config_of(std::size_t index) const {
  const auto at = [](const HeldPort& port) { return "127.0.0.1:" + std::to_string(port.number()); };
  std::string config = "server_name: " + name_of(index) + "\nserver_tags: [ " + name_of(index) +
                       " ]\nhttp: \"" + at(*monitors_[index]) + "\"\n";
  if (routes_.size() == 1) return config;
  config += "cluster { name: stela, no_advertise: true, listen: \"" + at(*routes_[index]) +
            "\", routes: [ ";
  for (const auto& route : routes_) config += "\"nats://" + at(*route) + "\", ";
  return config + "] }\n";
}

NatsServer& NatsCluster::server(const std::string& name) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (name_of(i) == name) return server(i);
  }
  throw std::out_of_range{"there is no server '" + name + "'"};
}

std::string NatsCluster::url() const {
  std::string urls;
  for (const auto& server : servers_) urls += (urls.empty() ? "" : ",") + server->url();
  return urls;
}

std::vector<int> NatsCluster::ports() const {
  std::vector<int> ports;
  for (const auto& server : servers_) ports.push_back(server->port());
  return ports;
}

bool NatsCluster::is_healthy() const {
  return std::all_of(monitors_.begin(), monitors_.end(),
                     [](const auto& port) { return says_that_it_is_well(port->number()); });
}

bool NatsCluster::heals(std::chrono::milliseconds limit) const {
  return eventually([this] { return is_healthy(); }, limit);
}

}  // namespace stela::test
