#include "support/pooler.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace stela::test {
namespace {

constexpr const char* program = "/usr/sbin/pgbouncer";
constexpr const char* socket_name = ".s.PGSQL.6432";

bool listens(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_there = connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(socket);
  return is_there;
}

}  // namespace

Pooler::Pooler(const PostgresServer& server, const std::string& settings) : settings_{settings} {
  if (access(program, X_OK) != 0) {
    throw std::runtime_error{"there is no PgBouncer; install the package pgbouncer"};
  }
  configure(server);
  // PgBouncer refuses to run as root.
  std::filesystem::permissions(dir_.path(), std::filesystem::perms::all);
  start();
}

void Pooler::configure(const PostgresServer& server) const {
  std::ofstream{dir_.file("pooler.ini")}
      << "[databases]\npostgres = host=" << server.folder() << " port=" << server.port()
      << " user=postgres\n[pgbouncer]\nlisten_port = 6432\nlisten_addr =\nauth_type = any\n"
      << "pool_mode = transaction\nmax_client_conn = 200\ndefault_pool_size = 8\n"
      << "server_login_retry = 1\nunix_socket_dir = " << dir_.path().string() << '\n'
      << settings_ << '\n';
}

void Pooler::lead_to(const PostgresServer& server) {
  configure(server);
  restart();
}

void Pooler::start() {
  process_ = std::make_unique<Process>([this] {
    const std::string file = dir_.file("pooler.ini");
    if (geteuid() == 0) {
      execl(program, "pgbouncer", "-q", "-u", "postgres", file.c_str(), nullptr);
    } else {
      execl(program, "pgbouncer", "-q", file.c_str(), nullptr);
    }
    _exit(127);
  });
  if (!eventually([&] { return listens(dir_.file(socket_name)); })) {
    throw std::runtime_error{"PgBouncer didn't start"};
  }
}

std::string Pooler::conninfo() const {
  return "host=" + dir_.path().string() + " port=6432 user=postgres dbname=postgres";
}

void Pooler::restart() {
  process_.reset();
  std::filesystem::remove(dir_.file(socket_name));
  start();
}

}  // namespace stela::test
