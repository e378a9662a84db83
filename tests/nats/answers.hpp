// A publisher's answers, waited for.
#pragma once

#include "support/process.hpp"

#include <stela/framework/uuid.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
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

/// Publishes an event of `type` that no store has.
inline void publish_event(Publisher& publisher, std::uint64_t request, const std::string& type) {
  const StreamId stream = StreamId::parse("order-7");
  const EventKind kind{.number = 1, .type = type, .publishes = true};
  const std::string id = std::to_string(request);
  const StoredEvent event{.sequence = GlobalSequence{static_cast<std::int64_t>(request)},
                          .stream = stream,
                          .version = StreamVersion{1},
                          .kind = kind,
                          .id = make_uuid(),
                          .recorded_at = {},
                          .correlation = {},
                          .causation_id = {},
                          .metadata = {},
                          .published_before = {},
                          .payload = "{}"};
  publisher.publish({.request = request, .event = event, .store_id = "s", .message_id = id});
}

}  // namespace stela::test
