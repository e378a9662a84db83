// A publisher's answers, waited for.
#pragma once

#include "support/process.hpp"

#include <stela/outbox/publisher.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::test {

/// Threads: any.
class Answers final : public AnswerSink {
 public:
  void take(Answer answer) override {
    const std::lock_guard lock{mutex_};
    answers_.push_back(std::move(answer));
  }

  /// The answer to a request; fails after a while with the kind `disconnected` and no detail.
  Answer wait_for(std::uint64_t request) {
    std::optional<Answer> found;
    eventually([&] { return (found = find(request)).has_value(); }, std::chrono::seconds{10});
    return found.value_or(Answer{.kind = Answer::Kind::disconnected});
  }

  std::optional<Answer> find(std::uint64_t request) {
    const std::lock_guard lock{mutex_};
    for (const Answer& answer : answers_) {
      if (answer.request == request) return answer;
    }
    return std::nullopt;
  }

  void clear() {
    const std::lock_guard lock{mutex_};
    answers_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<Answer> answers_;
};

inline std::string_view to_string(Answer::Kind kind) {
  static constexpr std::string_view names[] = {
      "connected", "disconnected", "stored", "stored_before", "unknown",
      "refused",   "rejected",     "full",   "misconfigured", "read_back"};
  return names[static_cast<int>(kind)];
}

}  // namespace stela::test
