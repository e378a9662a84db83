// A process of this program in another role.
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

namespace stela::chaos {

/// Its stderr goes to a file. Dies with its parent, and is killed when this goes.
class Child {
 public:
  /// On a host of this name, where the system lets us; as the parent if it is empty.
  Child(std::vector<std::string> arguments, const std::string& log, const std::string& host = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void signal(int number) const;
  /// SIGKILL, and returns when it is dead.
  void kill();
  /// SIGTERM, and waits. The exit status, or 128 and the signal; -1 if it doesn't end in time.
  int stop();
  /// True as long as nobody has ended it, itself included.
  bool is_running();
  /// Once it isn't running.
  int result() const noexcept { return result_; }

 private:
  void note(int status) noexcept;

  pid_t id_ = -1;
  bool reaped_ = false;
  int result_ = 0;
};

}  // namespace stela::chaos
