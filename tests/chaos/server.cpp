#include "chaos/server.hpp"

#include <fstream>
#include <stdexcept>

namespace stela::chaos {
namespace {

/// What isn't flushed by those who wait for it is lost when the server dies. In a long run dead
/// rows must go, as anywhere.
const test::PostgresServer::Options server_options{
    .tcp = true,
    .settings =
        "wal_writer_delay = 10s\nautovacuum = on\nautovacuum_naptime = 5s\n"
        // A consumer of each of 16 partitions has a connection that tells that it lives.
        "max_connections = 300"};

}  // namespace

Server::Server(const Settings& settings)
    : pair_{server_options},
      first_line_{pair_.primary().port()},
      second_line_{pair_.standby().port()},
      pooler_{pair_.primary()} {
  pair_.make_synchronous();
  std::ofstream{settings.urls()} << pair_.conninfo() << '\n'
                                 << "host=127.0.0.1,127.0.0.1 port=" << first_line_.port() << ','
                                 << second_line_.port() << " user=postgres dbname=postgres\n"
                                 << pooler_.conninfo() << '\n';
}

std::string Server::ask(const std::string& sql) try {
  return primary().ask("SET statement_timeout = 0; " + sql);
} catch (const std::runtime_error&) {
  return {};
}

void Server::crash() {
  is_down_ = true;
  primary().crash();
}

void Server::start_again() {
  primary().start_again();
  is_down_ = false;
}

void Server::promote() {
  pair_.fail_over();
  is_promoted_ = true;
  pooler_.lead_to(pair_.standby());
}

void Server::cut_replication() {
  primary().ask("ALTER SYSTEM RESET synchronous_standby_names");
  primary().ask("SELECT pg_reload_conf()");
  pair_.cut_replication();
}

void Server::heal() {
  for (test::TcpProxy* const line : {&first_line_, &second_line_}) line->heal();
  if (is_down_) start_again();
}

}  // namespace stela::chaos
