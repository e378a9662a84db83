#include "incoming.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace stela::nats {

struct Incoming::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::deque<MessageHandle> messages;
  bool is_over = false;
};

Incoming::Incoming(const Connection& connection, const std::string& subject)
    : queue_{std::make_shared<Queue>()} {
  auto hold = std::make_unique<Hold>(queue_);
  subscription_ = connection.subscribe(subject, take, hold.get());
  check(natsSubscription_SetPendingLimits(subscription_.get(), -1, -1),
        "taking messages without a limit");
  check(natsSubscription_SetOnCompleteCB(subscription_.get(), end, hold.get()),
        "listening for the end");
  hold.release();
}

void Incoming::take(natsConnection*, natsSubscription*, natsMsg* raw, void* hold) {
  Queue& queue = **static_cast<Hold*>(hold);
  MessageHandle message{raw};
  const std::lock_guard lock{queue.mutex};
  queue.messages.push_back(std::move(message));
  queue.changed.notify_one();
}

void Incoming::end(void* hold) {
  const std::unique_ptr<Hold> held{static_cast<Hold*>(hold)};
  const std::lock_guard lock{(*held)->mutex};
  (*held)->is_over = true;
  (*held)->changed.notify_one();
}

MessageHandle Incoming::next(std::chrono::milliseconds wait) {
  std::unique_lock lock{queue_->mutex};
  const auto is_news = [&] { return !queue_->messages.empty() || queue_->is_over; };
  if (!queue_->changed.wait_for(lock, wait, is_news)) return nullptr;
  if (queue_->messages.empty()) check(NATS_CONNECTION_CLOSED, "waiting for messages");
  MessageHandle message = std::move(queue_->messages.front());
  queue_->messages.pop_front();
  ++taken_;
  return message;
}

bool Incoming::is_empty() const {
  // nats.c counts a message as delivered before it enters our queue.
  int pending = 0;
  std::int64_t delivered = 0;
  const natsStatus status = natsSubscription_GetStats(subscription_.get(), &pending, nullptr,
                                                      nullptr, nullptr, &delivered, nullptr);
  if (status == NATS_OK) return static_cast<std::uint32_t>(pending + delivered) == taken_;
  // The subscription has ended, so every message is in the queue.
  const std::lock_guard lock{queue_->mutex};
  return queue_->messages.empty();
}

}  // namespace stela::nats
