// Processes for tests: forked, watched through shared memory and pipes, killed by their own id.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <new>
#include <stop_token>
#include <string>
#include <type_traits>

namespace stela::test {

/// A child that runs `work` and exits: 0 if it returns; 1, with a line on stderr, if it throws. It
/// dies with its parent, and the destructor kills it. Fork while the parent has neither threads nor
/// open databases.
class Process {
 public:
  explicit Process(const std::function<void()>& work);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t id() const noexcept { return id_; }
  void signal(int number) const;
  /// Sends SIGSTOP, and returns when it has stopped.
  void stop() const {
    signal(SIGSTOP);
    wait_until_stopped();
  }
  /// As above, for a child that stops itself.
  void wait_until_stopped() const;
  void resume() const { signal(SIGCONT); }
  /// Sends SIGKILL, and returns when it is dead.
  void kill();
  /// Waits for its end. Returns the exit status, or 128 plus the number of the signal.
  int wait();
  bool is_running();

 private:
  void note(int status) noexcept;

  pid_t id_ = -1;
  bool reaped_ = false;
  int result_ = 0;
};

/// Memory that this process shares with its later children.
class SharedPages {
 public:
  explicit SharedPages(std::size_t size);
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  void* address() const noexcept { return address_; }

 private:
  void* address_;
  std::size_t size_;
};

/// A `T` in shared memory: atomics that need no lock, and arrays of them.
template <class T>
class Shared {
 public:
  Shared() : pages_{sizeof(T)}, value_{*new (pages_.address()) T{}} {
    static_assert(std::is_trivially_destructible_v<T>);
  }
  T* operator->() const noexcept { return &value_; }
  T& operator*() const noexcept { return value_; }

 private:
  SharedPages pages_;
  T& value_;
};

/// A pipe from a child to its parent. Data that a child wrote before it was killed can still be
/// read.
class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Call it in the child. Up to 4096 bytes arrive in one piece.
  void write(const std::string& bytes) const;
  /// Call it in the parent. Returns what has arrived, without waiting.
  std::string read_available() const;

 private:
  int ends_[2] = {-1, -1};
};

/// Waits until `condition` holds. Tests use real time only here, as a limit before failing, and
/// pause between two looks only here.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds limit = std::chrono::seconds{30});

/// Waits for a stop, at most as long as `pace`. Sets the pace of a thread in a test.
bool is_stopped_within(std::chrono::microseconds pace, const std::stop_token& stop);

}  // namespace stela::test
