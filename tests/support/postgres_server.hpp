// A real PostgreSQL server with a cluster of its own, for the length of a test.
#pragma once

#include "support/temp_dir.hpp"

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Listens on a Unix socket in a folder of its own, and on nothing else unless it is asked to. It
/// is stopped by its pid when this goes, and ends with the thread that made it, however that ends.
/// Runs as the user "postgres" if the test is root's, as the server refuses that.
/// STELA_POSTGRES_BIN in the environment names another folder of programs than the installed one.
class PostgresServer {
 public:
  struct Options {
    /// What is committed is on a disk. Otherwise it is in memory, and only the server's end loses
    /// it.
    bool durable = false;
    /// Listens on 127.0.0.1 as well, on a port that is free.
    bool tcp = false;
    /// Lines of postgresql.conf.
    std::string settings = {};
    /// Lines of pg_hba.conf that come before those that trust everybody.
    std::string access = {};
    /// Of the server alone: "NAME=value".
    std::vector<std::string> environment = {};
    /// Copied into the folder of its data, for the server alone to read.
    std::vector<std::string> files = {};
    /// An empty folder for the server's log of writes, such as on a disk of its own.
    std::string log_folder = {};
    /// A standby of this server, which runs: its log is streamed, under the name "standby". Its own
    /// settings come after the other's.
    const PostgresServer* standby_of = nullptr;
  };

  /// Throws if PostgreSQL isn't installed: a test without it would hide a broken product.
  PostgresServer() : PostgresServer{Options{}} {}
  explicit PostgresServer(const Options& options);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// "postgresql://postgres@/postgres?host=…", by the socket.
  std::string url(const std::string& database = "postgres",
                  const std::string& user = "postgres") const;
  /// "host=127.0.0.1 port=…", without a user. Only of a server that listens there.
  std::string tcp() const;
  pid_t id() const noexcept { return pid_; }
  int port() const noexcept { return port_; }
  std::string folder() const { return dir_.path().string(); }

  /// What the first column of the first row holds, by psql. Throws what the server says.
  std::string ask(const std::string& sql) const;

  /// Runs a file by psql, with its variables as "name=value".
  void run_script(const std::string& file, const std::vector<std::string>& variables) const;

  /// By pg_dump, into a file.
  void dump(const std::string& database, const std::string& file) const;
  /// What the file holds takes the place of Stela's tables and the user's; all sessions stay.
  void restore(const std::string& database, const std::string& file) const;
  /// The database gives way to what the file holds: restored under another name, which is changed
  /// once the database's sessions are ended.
  void replace_by_dump(const std::string& database, const std::string& file) const;

  /// What "pg_ctl stop -m immediate" does: as a crash, but for what it leaves of itself.
  void crash();
  /// With what its folder holds now.
  void start_again();
  /// From now on only those who wait for it bring a commit to the disk.
  void stop_flushing_in_the_background() const;
  /// Of a standby: it becomes a primary. Returns when it takes writes.
  void promote() const;
  /// Makes a tablespace in a folder, where tables are made from now on.
  void make_tables_in(const std::string& folder) const;
  /// SIGSTOP of the server, which then accepts no connection, and SIGCONT.
  void pause() const;
  void resume() const;

 private:
  /// A program of PostgreSQL's on this server: what it says.
  std::string run_program(const std::string& name, const std::vector<std::string>& words) const;
  std::string psql(std::vector<std::string> words, const std::string& database = "postgres") const;
  void make_standby(const PostgresServer& primary) const;
  void configure(const Options& options) const;
  void move_log_to(const std::string& folder) const;
  void start();
  bool is_ready() const;
  /// The server's process that does this work.
  pid_t child_named(std::string_view name) const;
  std::string last_line_of_log() const;

  TempDir dir_;
  const std::vector<std::string> environment_;
  int port_ = 5432;
  pid_t pid_ = -1;
};

}  // namespace stela::test
