// Published messages without an answer, by subject.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

namespace stela::nats {

/// When a server denies a message, it names only the subject.
/// Threads: any number at once.
class Unanswered {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Requests are forgotten after `limit`, when their answers are no longer awaited.
  explicit Unanswered(std::chrono::milliseconds limit) : limit_{limit} {}

  /// Request numbers must rise.
  void add(std::uint64_t request, std::string_view subject, Time now);
  void remove(std::uint64_t request);
  /// Removes the requests of this subject, and returns their numbers.
  std::vector<std::uint64_t> take(std::string_view subject);

 private:
  struct Request {
    std::uint64_t number = 0;
    /// A hash. If two subjects collide, both are denied: the relay checks and tries again.
    std::size_t subject = 0;
    Time sent = {};
    bool is_open = true;
  };

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::deque<Request> requests_;
};

}  // namespace stela::nats
