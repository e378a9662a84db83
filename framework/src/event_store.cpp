#include <stela/framework/event_store.hpp>

#include "subscribe.hpp"

#include <array>
#include <exception>

namespace stela {

namespace signals = boost::signals2;

Subscription::Subscription() noexcept = default;
Subscription::Subscription(std::shared_ptr<void> connection) noexcept
    : connection_{std::move(connection)} {}
Subscription::~Subscription() = default;
Subscription::Subscription(Subscription&&) noexcept = default;
Subscription& Subscription::operator=(Subscription&&) noexcept = default;
void Subscription::disconnect() noexcept {
  connection_.reset();
}

DecisionAnswer EventLog::answer(const DecisionQuestion& question) {
  DecisionAnswer answer;
  if (!question.append_id.empty()) answer.appended = find_append(question.append_id);
  if (!answer.appended) answer.standpoint = standpoint(question.needs);
  return answer;
}

struct CommitListeners::Signal : signals::signal<void(const CommitNotice&)> {};

CommitListeners::CommitListeners(const Conventions& conventions)
    : conventions_{conventions}, signal_{std::make_unique<Signal>()} {}
CommitListeners::~CommitListeners() = default;

Subscription CommitListeners::add(std::function<void(const CommitNotice&)> listener) {
  const auto report = [this](const char* problem) {
    const std::array fields{LogEntry::Field{"problem", problem}};
    conventions_.log->write({.level = LogLevel::error,
                             .name = "commit.listener_failed",
                             .message = "a commit listener threw; the commit stands",
                             .fields = fields});
  };
  const auto guarded = [report, listener = std::move(listener)](const CommitNotice& notice) {
    try {
      listener(notice);
    } catch (const std::exception& e) {
      report(e.what());
    } catch (...) {
      report("unknown exception");
    }
  };
  return subscribe(*signal_, guarded);
}

bool CommitListeners::is_empty() const noexcept {
  return signal_->empty();
}

void CommitListeners::notify(const CommitNotice& notice) noexcept {
  try {
    (*signal_)(notice);
  } catch (...) {
    // Listeners catch their own exceptions, so this is a failed allocation. A notice is only a
    // hint: a listener that misses one reads the store.
  }
}

}  // namespace stela
