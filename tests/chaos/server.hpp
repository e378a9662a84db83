// A PostgreSQL server with a synchronous standby, and the ways to them: sockets, a bad network, a
// pooler.
#pragma once

#include "chaos/settings.hpp"
#include "support/pooler.hpp"
#include "support/postgres_pair.hpp"
#include "support/tcp_proxy.hpp"

#include <string>

namespace stela::chaos {

class Server {
 public:
  /// Started, with the ways to it in a file of the run's.
  explicit Server(const Settings& settings);

  /// The one that takes writes.
  test::PostgresServer& primary() { return is_promoted_ ? pair_.standby() : pair_.primary(); }
  /// The answer of psql, with no time-out; empty if the server can't be asked now.
  std::string ask(const std::string& sql);
  void crash();
  void start_again();
  /// The primary dies for good, and the standby takes its place.
  void promote();
  /// From now on commits wait for nobody, and the standby gets none of them.
  void cut_replication();
  bool is_promoted() const noexcept { return is_promoted_; }
  bool is_down() const noexcept { return is_down_; }

  test::TcpProxy& line() { return is_promoted_ ? second_line_ : first_line_; }
  test::Pooler& pooler() noexcept { return pooler_; }
  void heal();

 private:
  test::PostgresPair pair_;
  test::TcpProxy first_line_;
  test::TcpProxy second_line_;
  test::Pooler pooler_;
  bool is_promoted_ = false;
  bool is_down_ = false;
};

}  // namespace stela::chaos
