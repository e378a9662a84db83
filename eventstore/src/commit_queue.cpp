#include "commit_queue.hpp"

namespace stela {

bool CommitQueue::wait_for_turn(Ticket& ticket) {
  {
    const std::lock_guard lock{mutex_};
    queue_.push_back(&ticket);
    if (queue_.size() - begin_ == 1) return false;
  }
  ticket.state.wait(Ticket::waiting, std::memory_order_acquire);
  return ticket.state.load(std::memory_order_acquire) == Ticket::done;
}

const std::vector<CommitQueue::Ticket*>& CommitQueue::gather() {
  const std::lock_guard lock{mutex_};
  group_.clear();
  std::size_t bytes = 0;
  for (std::size_t i = begin_; i < queue_.size(); ++i) {
    Ticket* const ticket = queue_[i];
    const bool fits = group_.empty() || (!ticket->exclusive && group_.size() < max_group_size &&
                                         bytes + ticket->bytes <= max_group_bytes);
    if (!fits) break;
    group_.push_back(ticket);
    bytes += ticket->bytes;
    if (ticket->exclusive) break;
  }
  return group_;
}

void CommitQueue::finish() {
  Ticket* next = nullptr;
  std::vector<Ticket*> finished;
  {
    const std::lock_guard lock{mutex_};
    begin_ += group_.size();
    if (group_.size() > 1) finished.swap(group_);
    if (begin_ < queue_.size()) {
      next = queue_[begin_];
    } else {
      queue_.clear();
      begin_ = 0;
    }
    if (begin_ > 1024) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(begin_));
      begin_ = 0;
    }
  }
  // The next group begins while this one's members wake up. The first of the finished is the
  // leader's own ticket: nobody waits for it.
  if (next != nullptr) {
    next->state.store(Ticket::leading, std::memory_order_release);
    next->state.notify_one();
  }
  for (std::size_t i = 1; i < finished.size(); ++i) {
    finished[i]->state.store(Ticket::done, std::memory_order_release);
    finished[i]->state.notify_one();
  }
}

}  // namespace stela
