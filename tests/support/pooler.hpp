// PgBouncer in front of a PostgreSQL server, for the length of a test.
#pragma once

#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <memory>
#include <string>

namespace stela::test {

/// Listens on a Unix socket in its own folder, and is killed by the destructor. By default each
/// transaction gets the next free connection to the server.
class Pooler {
 public:
  /// `settings`: lines for the section [pgbouncer]. Throws if PgBouncer isn't installed.
  explicit Pooler(const PostgresServer& server, const std::string& settings = {});

  /// "host=… port=… user=postgres dbname=postgres".
  std::string conninfo() const;
  /// Kills it with SIGKILL, and starts another one.
  void restart();
  /// As `restart`, in front of another server.
  void lead_to(const PostgresServer& server);

 private:
  void configure(const PostgresServer& server) const;
  void start();

  const std::string settings_;
  TempDir dir_;
  std::unique_ptr<Process> process_;
};

}  // namespace stela::test
