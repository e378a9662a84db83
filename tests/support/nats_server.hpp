// A real nats-server with JetStream, for the length of a test.
#pragma once

#include "support/temp_dir.hpp"

#include <sys/types.h>
#include <string>

namespace stela::test {

/// Listens on loopback, on a port that the system picked, and keeps its streams in its own folder.
/// The destructor stops it by its pid. STELA_NATS_SERVER in the environment replaces the installed
/// program.
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

  /// SIGSTOP, waiting until it has stopped, and SIGCONT: it keeps its connections and answers
  /// nothing.
  void pause() const;
  void resume() const;
  /// Sends SIGKILL, and returns when it is dead.
  void kill();
  /// Starts it on its former port, with the present contents of its folder.
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
