#include "commit_queue.hpp"

#include <stela/framework/error.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>

namespace stela {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Word = std::atomic<std::uint32_t>;
static_assert(sizeof(Word) == sizeof(std::uint32_t) && Word::is_always_lock_free);

/// Sleeps while the word has this value: until a wake-up, or the deadline. (The wait of std::atomic
/// has no deadline.)
void sleep_while(const Word& word, std::uint32_t value,
                 steady_clock::time_point deadline) noexcept {
  const auto since = deadline.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const timespec at{seconds.count(), std::chrono::nanoseconds{since - seconds}.count()};
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, &at, nullptr, FUTEX_BITSET_MATCH_ANY);
}

/// The ticket may be gone by now: its address only serves as a key.
void wake(const Word& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

std::string name_of_thread(int thread) {
  const std::string number = std::to_string(thread);
  std::string name;
  std::getline(std::ifstream{"/proc/self/task/" + number + "/comm"}, name);
  return "thread " + number + (name.empty() ? "" : " (" + name + ')') + " of this process";
}

}  // namespace

bool CommitQueue::wait_for_turn(Ticket& ticket, milliseconds patience) {
  {
    const std::lock_guard lock{mutex_};
    queue_.push_back(&ticket);
    if (queue_.size() - begin_ == 1) return false;
  }
  Time deadline = steady_clock::now() + patience;
  for (;;) {
    const std::uint32_t state = ticket.state.load(std::memory_order_acquire);
    if (state != Ticket::waiting) return state == Ticket::done;
    sleep_while(ticket.state, Ticket::waiting, deadline);
    if (steady_clock::now() >= deadline) deadline = check_patience(ticket, patience);
  }
}

CommitQueue::Time CommitQueue::check_patience(const Ticket& ticket, milliseconds patience) {
  int holder = 0;
  std::string occupation;
  {
    const std::lock_guard lock{mutex_};
    const Time now = steady_clock::now();
    if (!held_since_) return now + patience;
    if (now < *held_since_ + patience) return *held_since_ + patience;
    const auto free = queue_.begin() + static_cast<std::ptrdiff_t>(begin_ + taken_);
    const auto found = std::find(free, queue_.end(), &ticket);
    // The ticket has had its turn.
    if (found == queue_.end()) return now + patience;
    queue_.erase(found);
    holder = holder_;
    occupation = occupation_->read();
  }
  const std::string who =
      occupation.empty() ? name_of_thread(holder) : occupation + " of this process";
  throw StoreBusy{who + " has held this store's line of writers for " +
                  std::to_string(patience.count()) +
                  " ms with work of its own; nothing was written; try again, and let no "
                  "transaction wait for another thread that uses its store"};
}

CommitQueue::Hold::Hold(CommitQueue& queue) noexcept : queue_{queue} {
  const std::lock_guard lock{queue_.mutex_};
  queue_.held_since_ = steady_clock::now();
  queue_.holder_ = gettid();
  queue_.occupation_ = &database::Occupation::of_this_thread();
}

CommitQueue::Hold::~Hold() {
  const std::lock_guard lock{queue_.mutex_};
  queue_.held_since_.reset();
}

bool CommitQueue::Group::has_room(const Ticket& ticket) const noexcept {
  if (caller_count == 0) return true;
  return !ticket.exclusive && size < max_group_size && caller_count < max_group_size &&
         bytes + ticket.bytes <= max_group_bytes;
}

void CommitQueue::Group::add_work(Ticket& work) noexcept {
  tickets[size++] = &work;
  bytes += work.bytes;
}

void CommitQueue::Group::add(Ticket& ticket) noexcept {
  callers[caller_count++] = &ticket;
  if (ticket.source == nullptr) return add_work(ticket);
  while (size < max_group_size && bytes <= max_group_bytes) {
    const std::size_t room =
        size == 0 ? std::numeric_limits<std::size_t>::max() : max_group_bytes - bytes;
    Ticket* const work = ticket.source->take(room);
    if (work == nullptr) return;
    add_work(*work);
    if (ticket.exclusive) return;
  }
}

void CommitQueue::gather(Group& group) noexcept {
  const std::lock_guard lock{mutex_};
  group.size = group.bytes = group.caller_count = 0;
  for (std::size_t i = begin_; i < queue_.size(); ++i) {
    Ticket& ticket = *queue_[i];
    if (!group.has_room(ticket)) break;
    group.add(ticket);
    if (ticket.exclusive) break;
  }
  taken_ = group.caller_count;
}

bool CommitQueue::move_on(const Group& group, bool may_go_on) noexcept {
  Ticket* next = nullptr;
  bool goes_on = false;
  {
    const std::lock_guard lock{mutex_};
    begin_ += group.caller_count;
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
    taken_ = next != nullptr ? 1 : 0;
    // The next caller leads.
    if (!goes_on) {
      leader_.store(std::thread::id{}, std::memory_order_relaxed);
      if (next != nullptr) next->state.store(Ticket::leading, std::memory_order_release);
    }
  }
  // The next group begins while this one's members wake up.
  if (next != nullptr && !goes_on) wake(next->state);
  return goes_on;
}

void CommitQueue::wake_members(const Ticket& own, const Group& group) noexcept {
  for (std::size_t i = 0; i < group.caller_count; ++i) {
    Ticket* const ticket = group.callers[i];
    if (ticket == &own) continue;
    ticket->state.store(Ticket::done, std::memory_order_release);
    wake(ticket->state);
  }
}

}  // namespace stela
