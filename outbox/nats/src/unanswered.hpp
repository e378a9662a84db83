// What was published and isn't answered yet, by its subject.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

namespace stela::nats {

/// A server that denies a message names its subject and nothing else.
/// Threads: any number at once.
class Unanswered {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Requests are forgotten after `limit`: nobody waits for them any more.
  explicit Unanswered(std::chrono::milliseconds limit) : limit_{limit} {}

  /// Requests are added by growing numbers.
  void add(std::uint64_t request, std::string_view subject, Time now);
  void remove(std::uint64_t request);
  /// Removes all of this subject: their numbers.
  std::vector<std::uint64_t> take(std::string_view subject);

 private:
  struct Request {
    std::uint64_t number = 0;
    /// What two subjects share by chance is denied for both: the relay looks, and tries again.
    std::size_t subject = 0;
    Time sent = {};
    bool is_open = true;
  };

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::deque<Request> requests_;
};

}  // namespace stela::nats
