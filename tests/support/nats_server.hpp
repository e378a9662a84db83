// A real nats-server with JetStream, for the length of a test.
#pragma once

#include "support/temp_dir.hpp"

#include <sys/types.h>
#include <string>

namespace stela::test {

/// Listens on loopback, on a port that the system picked, and keeps its streams in a folder of its
/// own. Stopped by its pid when it goes. STELA_NATS_SERVER in the environment names another program
/// than the one that is installed.
class NatsServer {
 public:
  /// Throws if there is no nats-server: a test without one would hide a broken product. `config` is
  /// added to the server's configuration; a '@' in it stands for the server's folder.
  explicit NatsServer(const std::string& config = {});
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  const std::string& url() const noexcept { return url_; }
  int port() const;
  std::string folder() const { return dir_.path().string(); }
  pid_t id() const noexcept { return pid_; }

  /// SIGSTOP, until it has stopped, and SIGCONT: it keeps its connections and answers nothing.
  void pause() const;
  void resume() const;
  /// SIGKILL, and returns when it is dead.
  void kill();
  /// On the port that it had, with what its folder holds now.
  void start_again();

 private:
  void start(const std::string& port);
  void wait_until_it_listens();
  std::string last_line_of_log() const;

  TempDir dir_;
  pid_t pid_ = -1;
  std::string url_;
};

}  // namespace stela::test
