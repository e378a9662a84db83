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

void CommitQueue::gather(Group& group) noexcept {
  const std::lock_guard lock{mutex_};
  group.size = 0;
  std::size_t bytes = 0;
  for (std::size_t i = begin_; i < queue_.size(); ++i) {
    Ticket* const ticket = queue_[i];
    const bool fits = group.size == 0 || (!ticket->exclusive && group.size < max_group_size &&
                                          bytes + ticket->bytes <= max_group_bytes);
    if (!fits) break;
    group.tickets[group.size++] = ticket;
    bytes += ticket->bytes;
    if (ticket->exclusive) break;
  }
}

bool CommitQueue::finish(const Ticket& own, const Group& group, bool may_go_on) noexcept {
  Ticket* next = nullptr;
  bool goes_on = false;
  {
    const std::lock_guard lock{mutex_};
    begin_ += group.size;
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
    goes_on = may_go_on && next != nullptr && !next->exclusive;
    // Whoever comes now leads.
    if (!goes_on) leader_.store(std::thread::id{}, std::memory_order_relaxed);
  }
  // The next group begins while this one's members wake up.
  if (next != nullptr && !goes_on) {
    next->state.store(Ticket::leading, std::memory_order_release);
    next->state.notify_one();
  }
  for (Ticket* const ticket : group.members()) {
    if (ticket == &own) continue;
    ticket->state.store(Ticket::done, std::memory_order_release);
    ticket->state.notify_one();
  }
  return goes_on;
}

}  // namespace stela
