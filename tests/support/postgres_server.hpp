// A real PostgreSQL server with a cluster of its own, for the length of a test.
#pragma once

#include "support/temp_dir.hpp"

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Listens on a Unix socket in its own folder, and on nothing else unless asked. The destructor
/// stops it by its pid, and it ends with the thread that created it. Runs as the user "postgres" if
/// the test runs as root, which the server refuses. STELA_POSTGRES_BIN in the environment replaces
/// the folder of the installed programs.
class PostgresServer {
 public:
  struct Options {
    /// Commits reach a disk. Otherwise the data is in memory, and only the end of the server loses
    /// commits.
    bool durable = false;
    /// Also listens on 127.0.0.1, on a free port.
    bool tcp = false;
    /// Lines of postgresql.conf.
    std::string settings = {};
    /// Lines of pg_hba.conf, before those that trust everybody.
    std::string access = {};
    /// For the server only: "NAME=value".
    std::vector<std::string> environment = {};
    /// Copied into its data folder, readable by the server only.
    std::vector<std::string> files = {};
    /// An empty folder for the write-ahead log, for example on a disk of its own.
    std::string log_folder = {};
    /// Makes it a standby of this running server, streaming under the name "standby". Its own
    /// settings follow the primary's.
    const PostgresServer* standby_of = nullptr;
  };

  /// Throws if PostgreSQL isn't installed: a test without it would hide a broken product.
  PostgresServer() : PostgresServer{Options{}} {}
  explicit PostgresServer(const Options& options);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// "postgresql://postgres@/postgres?host=…", through the socket.
  std::string url(const std::string& database = "postgres",
                  const std::string& user = "postgres") const;
  /// "host=127.0.0.1 port=…", without a user. Only for a server with `tcp`.
  std::string tcp() const;
  pid_t id() const noexcept { return pid_; }
  int port() const noexcept { return port_; }
  std::string folder() const { return dir_.path().string(); }

  /// The first column of the first row, through psql. Throws the server's error.
  std::string ask(const std::string& sql) const;

  /// Runs a file with psql, with variables as "name=value".
  void run_script(const std::string& file, const std::vector<std::string>& variables) const;

  /// Dumps into a file with pg_dump.
  void dump(const std::string& database, const std::string& file) const;
  /// Replaces Stela's tables and the user's by the contents of the file. All sessions stay.
  void restore(const std::string& database, const std::string& file) const;
  /// Replaces the database by the contents of the file: restored under another name, and renamed
  /// after ending the database's sessions.
  void replace_by_dump(const std::string& database, const std::string& file) const;

  /// Runs "pg_ctl stop -m immediate": like a crash, except for the files that it leaves.
  void crash();
  /// Starts it with the present contents of its folder.
  void start_again();
  /// From now on, commits reach the disk only if a session waits for them.
  void stop_flushing_in_the_background() const;
  /// Makes a standby a primary. Returns when it takes writes.
  void promote() const;
  /// Creates a tablespace in a folder and makes it the default for new tables.
  void make_tables_in(const std::string& folder) const;
  /// SIGSTOP of the server, which then accepts no connections, and SIGCONT.
  void pause() const;
  void resume() const;

 private:
  /// Runs a program of PostgreSQL on this server. Returns its output.
  std::string run_program(const std::string& name, const std::vector<std::string>& words) const;
  std::string psql(std::vector<std::string> words, const std::string& database = "postgres") const;
  void make_standby(const PostgresServer& primary) const;
  void configure(const Options& options) const;
  void move_log_to(const std::string& folder) const;
  void start();
  bool is_ready() const;
  /// The server's process with this task.
  pid_t child_named(std::string_view name) const;
  std::string last_line_of_log() const;

  TempDir dir_;
  const std::vector<std::string> environment_;
  int port_ = 5432;
  pid_t pid_ = -1;
};

}  // namespace stela::test
