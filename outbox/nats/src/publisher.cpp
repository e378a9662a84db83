#include <stela/nats/detail/settings.hpp>
#include <stela/nats/publisher.hpp>

#include "connect.hpp"
#include "database/owner.hpp"
#include "session.hpp"
#include "subject_layout.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace stela::nats {

/// The open session, and a thread that runs blocking jobs one after the other.
class Publisher::Worker {
 public:
  explicit Worker(const PublisherOptions& options)
      : layout{options}, thread_{[this](std::stop_token stop) { run(stop); }} {}

  void post(std::function<void()> job) {
    {
      const std::lock_guard lock{mutex_};
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  /// False in a forked child, which lacks the thread, and in which locks may be held for ever.
  bool is_here() const noexcept { return maker_.is_this(); }
  /// UsageError in a forked child.
  std::shared_ptr<Session>& session() {
    if (is_here()) return session_;
    throw UsageError{
        "a forked process used a publisher that its parent had made; make it after the "
        "fork"};
  }

  const SubjectLayout layout;

 private:
  void run(std::stop_token stop) {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock{mutex_};
        if (!changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
    }
  }

  const database::OwningProcess maker_;
  std::shared_ptr<Session> session_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> jobs_;
  std::jthread thread_;
};

void check(const PublisherOptions& options) {
  check(options.url, options.credentials, options.tls);
  const SubjectLayout layout{options};
  api_prefix(options.api);
  check_ranges(publisher_settings(), options);
  if (options.partitioner == nullptr) throw UsageError{"the publisher needs a partitioner"};
  const StreamOptions& stream = options.stream_options;
  if (stream.max_messages < 0) throw UsageError{"max_messages is 0 (no limit) or above"};
  if (stream.duplicate_window.count() < 1 ||
      (stream.max_age.count() > 0 && stream.duplicate_window > stream.max_age)) {
    throw UsageError{"duplicate_window is at least a second, and at most max_age"};
  }
}

Publisher::Publisher(const PublisherOptions& options) : options_{options} {
  nats::check(options_);
  worker_ = std::make_unique<Worker>(options_);
}

Publisher::~Publisher() {
  disconnect();
  // Waiting for a thread that doesn't exist would never end.
  if (!worker_->is_here()) static_cast<void>(worker_.release());
}

bool Publisher::can(Fence fence) const noexcept {
  return fence == options_.fence;
}

bool Publisher::can(Codec codec) const noexcept {
  return codec == options_.codec;
}

void Publisher::connect(std::uint64_t session, AnswerSink& sink) {
  disconnect();
  worker_->session() = std::make_shared<Session>(options_, worker_->layout, session, sink);
  worker_->post([opening = worker_->session()] { opening->open(); });
}

void Publisher::disconnect() noexcept {
  if (!worker_->is_here() || !worker_->session()) return;
  std::shared_ptr<Session> session = std::exchange(worker_->session(), nullptr);
  session->silence();
  // Closing waits for nats.c's threads, which the caller shouldn't have to wait for.
  worker_->post([ending = std::move(session)] { ending->end(); });
}

void Publisher::publish(const OutgoingMessage& message) {
  if (const auto& session = worker_->session()) session->publish(message);
}

void Publisher::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  if (const auto& session = worker_->session()) session->read_back(request, partition, from);
}

void Publisher::probe(std::uint64_t request) {
  const auto session = worker_->session();
  if (session) worker_->post([session, request] { session->probe(request); });
}

void Publisher::flush() {
  if (const auto& session = worker_->session()) session->flush();
}

}  // namespace stela::nats
