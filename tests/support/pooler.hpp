// PgBouncer in front of a PostgreSQL server, for the length of a test.
#pragma once

#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <memory>
#include <string>

namespace stela::test {

/// Listens on a Unix socket in a folder of its own, and is killed when this goes. By default it
/// gives each transaction the next connection to the server that is free.
class Pooler {
 public:
  /// `settings`: lines of its section [pgbouncer]. Throws if PgBouncer isn't installed.
  explicit Pooler(const PostgresServer& server, const std::string& settings = {});

  /// "host=… port=… user=postgres dbname=postgres".
  std::string conninfo() const;
  /// SIGKILL, and another one in its place.
  void restart();
  /// The same, in front of another server.
  void lead_to(const PostgresServer& server);

 private:
  void configure(const PostgresServer& server) const;
  void start();

  const std::string settings_;
  TempDir dir_;
  std::unique_ptr<Process> process_;
};

}  // namespace stela::test
