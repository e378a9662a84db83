#include "tool/program.hpp"

#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace stela::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* doing) {
  throw std::system_error{errno, std::generic_category(), doing};
}

/// An open file without a name.
int scratch_file(const std::string& content) {
  const int file = memfd_create("stela-test", MFD_CLOEXEC);
  if (file < 0) fail("memfd_create");
  if (write(file, content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      lseek(file, 0, SEEK_SET) != 0) {
    fail("write");
  }
  return file;
}

std::string read_from(int file) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t size = pread(file, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (size <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

[[noreturn]] void become(const std::vector<std::string>& arguments, const RunOptions& options,
                         int input, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(127);
  dup2(input, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<std::string> environment{"PATH=/usr/bin:/bin:/usr/sbin", "TERM=xterm"};
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  std::vector<std::string> words{options.program.empty() ? program() : options.program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  execve(words.front().c_str(), pointers(words).data(), pointers(environment).data());
  _exit(127);
}

/// A copy of the program that anybody may run, wherever it was built.
class PublicCopy {
 public:
  PublicCopy() {
    // Coverage is noted there too.
    fs::permissions(dir_.path(), fs::perms::all);
    fs::copy_file(program(), path());
    copy_libraries();
  }
  std::string path() const { return dir_.file("stela"); }
  std::string folder() const { return dir_.path().string(); }

 private:
  /// Those that aren't the system's, which it would look for where it was built.
  void copy_libraries() {
    const Ran ran = run({program()}, {.program = "/usr/bin/ldd"});
    if (ran.code != 0) throw std::runtime_error{"ldd: " + ran.err};
    // "	libstela_tool.so.0 => /home/me/build/libstela_tool.so.0 (0x00007f…)"
    std::istringstream words{ran.out};
    for (std::string word; words >> word;) {
      if (word != "=>" || !(words >> word)) continue;
      const bool is_of_system = word.starts_with("/lib") || word.starts_with("/usr/lib");
      if (is_of_system || word.front() != '/') continue;
      fs::copy_file(word, dir_.path() / fs::path{word}.filename());
    }
  }

  TempDir dir_;
};

}  // namespace

std::string program() {
  return STELA_PROGRAM;
}

Running::Running(const std::vector<std::string>& arguments, const RunOptions& options) {
  const int input = scratch_file(options.input);
  if (options.in_terminal) {
    open_terminal();
  } else {
    ends_[0] = scratch_file({});
    ends_[1] = scratch_file({});
  }
  id_ = fork();
  if (id_ < 0) fail("fork");
  if (id_ == 0) become(arguments, options, input, ends_[0], ends_[1]);
  close(input);
}

void Running::open_terminal() {
  const winsize size{.ws_row = 40, .ws_col = 140, .ws_xpixel = 0, .ws_ypixel = 0};
  if (openpty(&terminal_, &ends_[0], nullptr, nullptr, &size) != 0) fail("openpty");
  ends_[1] = dup(ends_[0]);
  for (const int end : {terminal_, ends_[0], ends_[1]}) fcntl(end, F_SETFD, FD_CLOEXEC);
  fcntl(terminal_, F_SETFL, O_NONBLOCK);
}

Running::~Running() {
  if (!ended_) {
    ::kill(id_, SIGKILL);
    wait();
  }
  close(ends_[0]);
  close(ends_[1]);
  if (terminal_ >= 0) close(terminal_);
}

void Running::signal(int number) const {
  ::kill(id_, number);
}

int Running::wait() {
  int status = 0;
  while (!ended_) {
    if (waitpid(id_, &status, 0) == id_) {
      ended_ = true;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (errno != EINTR) {
      fail("waitpid");
    }
  }
  return code_;
}

std::string Running::out() {
  return terminal_ >= 0 ? screen() : read_from(ends_[0]);
}

std::string Running::err() {
  return terminal_ >= 0 ? screen() : read_from(ends_[1]);
}

std::string Running::screen() {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t size = read(terminal_, buffer.data(), buffer.size());
    if (size <= 0) return screen_;
    screen_.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

Ran run(const std::vector<std::string>& arguments, const RunOptions& options) {
  Running running{arguments, options};
  const int code = running.wait();
  return {code, running.out(), running.err()};
}

std::string run_well(const std::vector<std::string>& arguments, const RunOptions& options) {
  const Ran ran = run(arguments, options);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

Ran run_unprivileged(std::vector<std::string> arguments, RunOptions options) {
  if (geteuid() != 0) return run(arguments, options);
  static const PublicCopy copy;
  arguments.insert(arguments.begin(),
                   {"--reuid=65534", "--regid=65534", "--clear-groups", copy.path()});
  options.environment["LD_LIBRARY_PATH"] = copy.folder();
  options.environment["GCOV_PREFIX"] = copy.folder();
  options.program = "/usr/bin/setpriv";
  return run(arguments, options);
}

std::string member(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const std::size_t at = json.find(key);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size();
  if (json[begin] == '"') return json.substr(begin + 1, json.find('"', begin + 1) - begin - 1);
  return json.substr(begin, json.find_first_of(",}", begin) - begin);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace stela::test
