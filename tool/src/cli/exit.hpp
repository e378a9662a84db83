// The exit codes, and the exceptions that end a command with one.
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
  /// Conditional appends: at least one condition or expected version didn't hold.
  conflict = 5,
  interrupted = 130,
  /// The reader of stdout has gone: as if SIGPIPE had ended the process.
  reader_gone = 141,
};

/// Ends the command. Its text becomes the one sentence on stderr.
class Exit : public std::runtime_error {
 public:
  Exit(ExitCode code, const std::string& what) : std::runtime_error{what}, code_{code} {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The reader of stdout has gone. Nothing is printed about it.
class ReaderGone : public Exit {
 public:
  ReaderGone() : Exit{reader_gone, "the reader of stdout has gone"} {}
};

/// The command line is wrong. The message points to help.
class Misuse : public Exit {
 public:
  explicit Misuse(const std::string& what) : Exit{usage, what} {}
};

}  // namespace stela::tool
