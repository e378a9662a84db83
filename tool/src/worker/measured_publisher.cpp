#include "worker/measured_publisher.hpp"

namespace stela::tool {

void MeasuredPublisher::connect(std::uint64_t session, AnswerSink& sink) {
  {
    const std::lock_guard lock{mutex_};
    sent_.clear();
    sink_ = &sink;
  }
  publisher_.connect(session, *this);
}

void MeasuredPublisher::publish(const OutgoingMessage& message) {
  {
    const std::lock_guard lock{mutex_};
    sent_.insert_or_assign(message.request, std::chrono::steady_clock::now());
  }
  publisher_.publish(message);
}

void MeasuredPublisher::take(Answer answer) {
  AnswerSink* sink = nullptr;
  std::optional<Steady> sent;
  {
    const std::lock_guard lock{mutex_};
    sink = sink_;
    if (const auto at = sent_.find(answer.request); at != sent_.end()) {
      if (answer.kind == Answer::Kind::stored) sent = at->second;
      sent_.erase(at);
    }
  }
  if (sent) {
    statistics_.add_publish_latency(std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - *sent));
  }
  sink->take(std::move(answer));
}

}  // namespace stela::tool
