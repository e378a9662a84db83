// The process that may use an object.
#pragma once

#include <stela/framework/detail/forks.hpp>
#include <stela/framework/error.hpp>

namespace stela::database {

/// The process that made an object. A forked child has a copy of its parent's memory, but neither
/// its locks nor its threads.
/// Threads: any number at once.
class OwningProcess {
 public:
  /// False in a forked child.
  bool is_this() const noexcept { return detail::count_forks() == forks_; }
  /// UsageError in a forked child.
  void check() const {
    if (is_this()) return;
    throw UsageError{
        "a forked process used a store that its parent had opened; open it after the fork"};
  }

 private:
  int forks_ = detail::count_forks();
};

}  // namespace stela::database
