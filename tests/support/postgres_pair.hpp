// A primary and its standby, with failover.
#pragma once

#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stdexcept>
#include <string>

namespace stela::test {

/// The standby is asynchronous until make_synchronous is called.
class PostgresPair {
 public:
  explicit PostgresPair(const PostgresServer::Options& options = {})
      : primary_{options}, standby_{standby_of(primary_, options)} {}

  /// Names both hosts.
  std::string url() const {
    return "postgresql://postgres@/postgres?host=" + primary_.folder() + ',' + standby_.folder();
  }
  std::string conninfo() const {
    return "host=" + primary_.folder() + ',' + standby_.folder() +
           " port=" + std::to_string(primary_.port()) + ',' + std::to_string(standby_.port()) +
           " user=postgres dbname=postgres";
  }
  PostgresServer& primary() noexcept { return primary_; }
  PostgresServer& standby() noexcept { return standby_; }

  /// Makes commits wait for the standby's disk.
  void make_synchronous() {
    primary_.ask("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    primary_.ask("SELECT pg_reload_conf()");
    require(
        [this] { return primary_.ask("SELECT sync_state FROM pg_stat_replication") == "sync"; });
  }
  /// Waits until the standby shows everything that the primary has committed by now.
  void catch_up() {
    const std::string end = primary_.ask("SELECT pg_current_wal_insert_lsn()");
    require(
        [&] { return standby_.ask("SELECT pg_last_wal_replay_lsn() >= '" + end + "'") == "t"; });
  }
  /// Stops replication: later commits of the primary don't reach the standby.
  void cut_replication() {
    standby_.ask("ALTER SYSTEM SET primary_conninfo = 'host=nowhere.invalid'");
    standby_.ask("SELECT pg_reload_conf()");
    require([this] { return primary_.ask("SELECT count(*) FROM pg_stat_replication") == "0"; });
  }
  /// Crashes the primary and promotes the standby.
  void fail_over() {
    primary_.crash();
    standby_.promote();
  }

 private:
  static PostgresServer::Options standby_of(const PostgresServer& primary,
                                            PostgresServer::Options options) {
    options.standby_of = &primary;
    return options;
  }
  template <class Condition>
  static void require(Condition&& condition) {
    if (!eventually(condition)) throw std::runtime_error{"replication doesn't do as it is told"};
  }

  PostgresServer primary_;
  PostgresServer standby_;
};

}  // namespace stela::test
