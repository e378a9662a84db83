#include <stela/nats/publisher.hpp>

#include "connect.hpp"
#include "layout.hpp"
#include "session.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace stela::nats {

/// Runs what would block, one job after the other.
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

  const Layout layout;

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

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> jobs_;
  std::jthread thread_;
};

void check(const PublisherOptions& options) {
  check(options.url, options.credentials, options.tls);
  const Layout layout{options};
  api_prefix(options.api);
  if (options.connect_timeout.count() <= 0 || options.publish_timeout.count() <= 0) {
    throw UsageError{"connect_timeout and publish_timeout are above 0"};
  }
  if (options.partitioner == nullptr) throw UsageError{"the publisher needs a partitioner"};
  const StreamOptions& stream = options.stream_options;
  if (stream.replicas < 1 || stream.replicas > 5) throw UsageError{"replicas are 1 to 5"};
  if (stream.max_bytes < 0 || stream.max_messages < 0 || stream.max_age.count() < 0) {
    throw UsageError{"the limits of a stream are 0 (none) or above"};
  }
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
}

bool Publisher::can(Fence fence) const noexcept {
  return fence == options_.fence;
}

bool Publisher::can(Codec codec) const noexcept {
  return codec == options_.codec;
}

void Publisher::connect(std::uint64_t session, AnswerSink& sink) {
  disconnect();
  session_ = std::make_shared<Session>(options_, worker_->layout, session, sink);
  worker_->post([opening = session_] { opening->open(); });
}

void Publisher::disconnect() noexcept {
  if (!session_) return;
  session_->silence();
  // Closing waits for nats.c's threads: not on the caller's time.
  worker_->post([ending = std::move(session_)] { ending->end(); });
  session_.reset();
}

void Publisher::publish(const OutgoingMessage& message) {
  if (session_) session_->publish(message);
}

void Publisher::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  if (session_) session_->read_back(request, partition, from);
}

void Publisher::probe(std::uint64_t request) {
  if (!session_) return;
  worker_->post([session = session_, request] { session->probe(request); });
}

void Publisher::flush() {
  if (session_) session_->flush();
}

}  // namespace stela::nats
