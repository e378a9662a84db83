// Programs that are timed from outside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace stela::bench {

using Words = std::vector<std::string>;

/// Seconds from before its start until it has ended. Reads `input`, or nothing; writes to `output`,
/// or nowhere. Throws if it can't be started, or doesn't end with 0.
double seconds_of(const Words& words, const std::string& input = "/dev/null",
                  const std::string& output = "/dev/null");

/// What a run of a program took, from before its start until it has ended.
struct Use {
  double seconds = 0;
  /// Of a processor, in the program itself.
  double processor_seconds = 0;
  /// At its peak.
  double mib = 0;
  int exit_code = 0;
};
/// The same, however it ends; throws if a signal ended it.
Use use_of(const Words& words, const std::string& input = "/dev/null",
           const std::string& output = "/dev/null");

/// A program that runs in a terminal of its own, or without one; asked to end, and waited for, when
/// this goes.
class RunningProgram {
 public:
  RunningProgram(const Words& words, bool in_terminal);
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  /// Seconds of a processor that it has used so far, by all of its threads.
  double processor_seconds() const;
  /// How much it has sent to its terminal.
  std::size_t bytes_shown() const noexcept { return shown_.load(); }

 private:
  pid_t id_ = -1;
  int terminal_ = -1;
  std::atomic<std::size_t> shown_{0};
  std::jthread reader_;
};

}  // namespace stela::bench
