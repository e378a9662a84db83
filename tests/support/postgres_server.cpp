#include "support/postgres_server.hpp"

#include "support/loopback.hpp"
#include "support/process.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace stela::test {
namespace {

namespace fs = std::filesystem;

std::string find_programs() {
  if (const char* const named = std::getenv("STELA_POSTGRES_BIN")) return named;
  for (const char* const version : {"15", "16", "17"}) {
    const std::string folder = std::string{"/usr/lib/postgresql/"} + version + "/bin";
    if (access((folder + "/postgres").c_str(), X_OK) == 0) return folder;
  }
  throw std::runtime_error{"there is no PostgreSQL server; install the package postgresql-15"};
}

/// The user that the server runs as. Null, for this user, unless it is root.
const passwd* user_of_server() {
  if (geteuid() != 0) return nullptr;
  for (const char* const name : {"postgres", "nobody"}) {
    if (const passwd* const user = getpwnam(name)) return user;
  }
  throw std::runtime_error{"there is no user 'postgres' to run the server as"};
}

/// A port that nobody listens on now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  const bool found = bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(socket);
  if (!found) throw std::runtime_error{"there is no free port"};
  return ntohs(address.sin_port);
}

void give_away(const fs::path& path) {
  const passwd* const user = user_of_server();
  if (user == nullptr) return;
  const auto give = [&](const fs::path& one) {
    if (lchown(one.c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error{"can't give away " + one.string()};
    }
  };
  give(path);
  for (const auto& entry : fs::recursive_directory_iterator{path}) give(entry.path());
}

/// Replaces the calling child process by the program.
[[noreturn]] void become(const std::vector<std::string>& words, const std::string& log,
                         const passwd* user, const std::vector<std::string>& environment) {
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  if (user != nullptr && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
  // Changing the user would reset it. The server's own children end with the server.
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  for (const std::string& one : environment) putenv(const_cast<char*>(one.c_str()));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

pid_t spawn(const std::vector<std::string>& words, const std::string& log,
            const std::vector<std::string>& environment = {}) {
  const passwd* const user = user_of_server();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error{"fork failed"};
  if (pid == 0) become(words, log, user, environment);
  return pid;
}

std::string last_line_of(const std::string& file) {
  std::ifstream log{file};
  std::string last;
  for (std::string line; std::getline(log, line);) last = line;
  return last;
}

/// An unused cluster, made once for all tests of this build, and copied.
fs::path find_template() {
  const fs::path kept = STELA_TEST_POSTGRES_TEMPLATE;
  if (fs::exists(kept)) return kept;
  const TempDir made;
  give_away(made.path());
  const pid_t pid =
      spawn({find_programs() + "/initdb", "-D", made.file("data"), "-U", "postgres", "-A", "trust",
             "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1"},
            made.file("initdb.log"));
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error{"initdb: " + last_line_of(made.file("initdb.log"))};
  const fs::path mine = kept.string() + '.' + std::to_string(getpid());
  fs::create_directories(kept.parent_path());
  fs::copy(made.file("data"), mine, fs::copy_options::recursive);
  std::error_code ignored;
  fs::rename(mine, kept, ignored);
  // Another test may have been faster.
  fs::remove_all(mine, ignored);
  return kept;
}

}  // namespace

PostgresServer::PostgresServer(const Options& options)
    : dir_{options.durable ? TempDir{} : TempDir::in_memory()}, environment_{options.environment} {
  if (options.tcp) port_ = free_port();
  if (options.standby_of != nullptr) {
    make_standby(*options.standby_of);
  } else {
    fs::copy(find_template(), dir_.path() / "data", fs::copy_options::recursive);
  }
  fs::permissions(dir_.path() / "data", fs::perms::owner_all);
  configure(options);
  if (!options.log_folder.empty()) move_log_to(options.log_folder);
  give_away(dir_.path());
  start();
}

PostgresServer::~PostgresServer() {
  crash();
}

void PostgresServer::make_standby(const PostgresServer& primary) const {
  give_away(dir_.path());
  const pid_t pid = spawn({find_programs() + "/pg_basebackup", "-D", dir_.file("data"), "-d",
                           "host=" + primary.folder() + " port=" + std::to_string(primary.port()) +
                               " user=postgres application_name=standby",
                           "-R", "-X", "stream", "-c", "fast", "--no-sync"},
                          dir_.file("backup.log"));
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) {
    throw std::runtime_error{"pg_basebackup: " + last_line_of(dir_.file("backup.log"))};
  }
}

void PostgresServer::configure(const Options& options) const {
  std::ofstream settings{dir_.path() / "data" / "postgresql.conf", std::ios::app};
  settings << "listen_addresses = '" << (options.tcp ? "127.0.0.1" : "") << "'\n"
           << "port = " << port_ << "\nunix_socket_directories = '" << dir_.path().string() << "'\n"
           << "fsync = " << (options.durable ? "on" : "off") << "\nshared_buffers = 16MB\n"
           << "max_connections = 50\nautovacuum = off\nlogging_collector = off\n"
           // A standby that waits for its primary notices its promotion after this interval.
           << "wal_retrieve_retry_interval = 100ms\n"
           << options.settings << '\n';
  const fs::path file = dir_.path() / "data" / "pg_hba.conf";
  std::ofstream access{file, std::ios::trunc};
  for (const std::string& source : options.files) {
    const fs::path copy = dir_.path() / "data" / fs::path{source}.filename();
    fs::copy_file(source, copy);
    fs::permissions(copy, fs::perms::owner_read | fs::perms::owner_write);
  }
  access << options.access << "\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n"
         << "local replication all trust\nhost replication all 127.0.0.1/32 trust\n";
}

void PostgresServer::move_log_to(const std::string& folder) const {
  const fs::path log = dir_.path() / "data" / "pg_wal";
  fs::copy(log, folder, fs::copy_options::recursive);
  fs::remove_all(log);
  fs::create_directory_symlink(folder, log);
  give_away(folder);
}

void PostgresServer::make_tables_in(const std::string& folder) const {
  fs::create_directory(folder);
  give_away(folder);
  ask("CREATE TABLESPACE elsewhere LOCATION '" + folder + "'");
  ask("ALTER ROLE ALL SET default_tablespace = elsewhere");
}

void PostgresServer::start() {
  pid_ = spawn({find_programs() + "/postgres", "-D", dir_.file("data")}, dir_.file("server.log"),
               environment_);
  bool has_ended = false;
  eventually([&] {
    has_ended = waitpid(pid_, nullptr, WNOHANG) != 0;
    return has_ended || is_ready();
  });
  if (has_ended) pid_ = -1;
  if (!is_ready()) throw std::runtime_error{"PostgreSQL didn't start: " + last_line_of_log()};
}

bool PostgresServer::is_ready() const {
  // The server's own status: its pid is the first line, its state the eighth.
  std::ifstream file{dir_.path() / "data" / "postmaster.pid"};
  std::string pid;
  std::string line;
  std::getline(file, pid);
  for (int i = 0; i < 7; ++i) std::getline(file, line);
  return pid == std::to_string(pid_) && line.starts_with("ready");
}

void PostgresServer::promote() const {
  const fs::path order = dir_.path() / "data" / "promote";
  std::ofstream{order}.flush();
  ::kill(pid_, SIGUSR1);
  if (!eventually([this] { return ask("SELECT pg_is_in_recovery()") == "f"; })) {
    throw std::runtime_error{"the standby wasn't promoted: " + last_line_of_log()};
  }
}

std::string PostgresServer::last_line_of_log() const {
  return last_line_of(dir_.file("server.log"));
}

std::string PostgresServer::url(const std::string& database, const std::string& user) const {
  return "postgresql://" + user + "@/" + database + "?host=" + dir_.path().string() +
         "&port=" + std::to_string(port_);
}

std::string PostgresServer::tcp() const {
  return "host=127.0.0.1 port=" + std::to_string(port_);
}

std::string PostgresServer::run_program(const std::string& name,
                                        const std::vector<std::string>& words) const {
  std::string command = find_programs() + '/' + name + " -h " + dir_.path().string() + " -p " +
                        std::to_string(port_) + " -U postgres";
  for (const std::string& word : words) {
    command += " '";
    for (const char c : word) command += c == '\'' ? std::string{"'\\''"} : std::string{c};
    command += '\'';
  }
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error{name + " can't be started"};
  std::string answer;
  std::array<char, 4096> piece{};
  while (const std::size_t size = fread(piece.data(), 1, piece.size(), pipe)) {
    answer.append(piece.data(), size);
  }
  if (pclose(pipe) != 0) throw std::runtime_error{name + ": " + answer};
  return answer;
}

std::string PostgresServer::psql(std::vector<std::string> words,
                                 const std::string& database) const {
  words.insert(words.begin(), {"-XqAt", "-v", "ON_ERROR_STOP=1"});
  words.push_back(database);
  return run_program("psql", words);
}

std::string PostgresServer::ask(const std::string& sql) const {
  const std::string answer = psql({"-c", sql});
  return answer.substr(0, answer.find('\n'));
}

void PostgresServer::run_script(const std::string& file,
                                const std::vector<std::string>& variables) const {
  std::vector<std::string> words{"-f", file};
  for (const std::string& variable : variables) words.insert(words.end(), {"-v", variable});
  psql(words);
}

void PostgresServer::dump(const std::string& database, const std::string& file) const {
  run_program("pg_dump", {"-f", file, database});
}

void PostgresServer::restore(const std::string& database, const std::string& file) const {
  psql({"-c", "DROP SCHEMA stela, stela_app CASCADE", "-f", file}, database);
}

void PostgresServer::replace_by_dump(const std::string& database, const std::string& file) const {
  const std::string name = '"' + database + '"';
  ask("CREATE DATABASE restored");
  psql({"-f", file}, "restored");
  ask("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false");
  const auto has_sessions = [&] {
    return ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '" +
               database + "'") != "0";
  };
  eventually([&] { return !has_sessions(); });
  ask("ALTER DATABASE " + name + " RENAME TO replaced");
  ask("ALTER DATABASE restored RENAME TO " + name);
}

void PostgresServer::crash() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGQUIT);
  ::kill(pid_, SIGCONT);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void PostgresServer::start_again() {
  start();
}

void PostgresServer::stop_flushing_in_the_background() const {
  ::kill(child_named("walwriter"), SIGSTOP);
}

pid_t PostgresServer::child_named(std::string_view name) const {
  pid_t found = -1;
  eventually([&] {
    for (const auto& process : fs::directory_iterator{"/proc"}) {
      std::ifstream stat{process.path() / "stat"};
      std::string words;
      std::getline(stat, words);
      // "pid (command) state parent …"
      const std::size_t end = words.rfind(") ");
      if (end == std::string::npos) continue;
      if (std::stoi(words.substr(end + 4)) != pid_) continue;
      std::ifstream command{process.path() / "cmdline"};
      std::getline(command, words, '\0');
      if (words.find(name) != std::string::npos) found = std::stoi(process.path().filename());
    }
    return found > 0;
  });
  if (found < 0) throw std::runtime_error{"the server has no process " + std::string{name}};
  return found;
}

void PostgresServer::pause() const {
  ::kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void PostgresServer::resume() const {
  ::kill(pid_, SIGCONT);
}

}  // namespace stela::test
