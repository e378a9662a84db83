// The `stela` program, run as a user runs it.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace stela::test {

struct Ran {
  int code = -1;
  std::string out = {};
  std::string err = {};
};

struct RunOptions {
  std::string input = {};
  /// Added to an environment that has PATH and nothing of Stela's.
  std::map<std::string, std::string> environment = {};
  /// Where it runs; empty: here.
  std::string folder = {};
  /// Another program than `stela`.
  std::string program = {};
  /// In a terminal, whose screen `out` and `err` both are; without input.
  bool in_terminal = false;
};

/// The program under test.
std::string program();

/// Runs it to its end, without a terminal.
Ran run(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// As run, but the test fails unless it ends with 0; what it printed.
std::string run_well(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// As run, by somebody who isn't root: root may read everything.
Ran run_unprivileged(std::vector<std::string> arguments, RunOptions options = {});

/// One that goes on: killed when this goes. What it prints can be read meanwhile.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments, const RunOptions& options = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t id() const noexcept { return id_; }
  void signal(int number) const;
  /// Its exit code, or 128 and the number of the signal that ended it.
  int wait();
  /// All that it has printed so far.
  std::string out();
  std::string err();

 private:
  void open_terminal();
  /// What a terminal was sent is gone once it is read.
  std::string screen();

  pid_t id_ = -1;
  bool ended_ = false;
  int code_ = -1;
  int ends_[2] = {-1, -1};
  int terminal_ = -1;
  std::string screen_ = {};
};

/// The number or text behind `"name":` in JSON that is known to be flat there; empty if there is
/// none.
std::string member(const std::string& json, const std::string& name);

std::vector<std::string> lines_of(const std::string& text);

}  // namespace stela::test
