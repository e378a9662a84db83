// Where the relay's thread sleeps, and what wakes it.
#pragma once

#include <stela/outbox/publisher.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace stela::relay {

/// Answers of a publisher, commits of this process, and hints of commits of others.
/// Threads: `take` and `wake` from any; the rest belongs to the relay's thread.
class Mailbox final : public AnswerSink {
 public:
  /// `log` is the file that every commit of the database writes to; empty for one that nobody else
  /// can see.
  explicit Mailbox(std::string log);
  ~Mailbox() override;

  void take(Answer answer) override;
  void wake() noexcept;

  /// Everything that came since the last call.
  std::vector<Answer> answers();

  /// Sleeps until something comes, at most until `deadline`. True if the file was written to.
  bool wait_until(std::chrono::steady_clock::time_point deadline);

 private:
  void signal() noexcept;
  void watch();
  bool read_watch();

  const std::string log_;
  int event_ = -1;
  int watch_ = -1;
  bool watching_ = false;
  std::atomic<bool> signalled_{false};
  std::mutex mutex_;
  /// Guarded by mutex_.
  std::vector<Answer> answers_;
};

}  // namespace stela::relay
