// A real nats-server with JetStream, for the length of a test.
#pragma once

#include "support/temp_dir.hpp"

#include <string>
#include <sys/types.h>

namespace stela::test {

/// Listens on loopback, on a port that the system picked, and keeps its streams in a folder of its
/// own. Stopped by its pid when it goes.
class NatsServer {
 public:
  /// Throws if there is no nats-server: a test without one would hide a broken product.
  NatsServer();
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  const std::string& url() const noexcept { return url_; }

 private:
  TempDir dir_;
  pid_t pid_ = -1;
  std::string url_;
};

}  // namespace stela::test
