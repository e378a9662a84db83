// How a command ends: the exit codes, and what is thrown to end with one.
#pragma once

#include <stdexcept>
#include <string>

namespace stela::tool {

enum ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  not_found = 3,
  cannot_connect = 4,
  /// Of appends with a condition or an expected version, at least one didn't hold.
  conflict = 5,
  interrupted = 130,
  /// Whoever read stdout is gone: as if SIGPIPE had ended the process.
  reader_gone = 141,
};

/// Ends the command: its text is the one sentence on stderr.
class Exit : public std::runtime_error {
 public:
  Exit(ExitCode code, const std::string& what) : std::runtime_error{what}, code_{code} {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Nobody reads stdout any more. Nothing is said about it.
class ReaderGone : public Exit {
 public:
  ReaderGone() : Exit{reader_gone, "the reader of stdout has gone"} {}
};

/// What was typed is wrong; help is pointed to.
class Misuse : public Exit {
 public:
  explicit Misuse(const std::string& what) : Exit{usage, what} {}
};

}  // namespace stela::tool
