#include "read_ahead.hpp"

#include <algorithm>
#include <utility>

namespace stela::projections {

ReadAhead::ReadAhead(Scan& scan, std::span<Seat* const> seats)
    : scan_{scan}, seats_{seats.begin(), seats.end()}, reader_{[this] { read_all(); }} {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock{mutex_};
    stopped_ = true;
  }
  changed_.notify_all();
  reader_.join();
  for (Seat* const seat : seats_) seat->decoded = nullptr;
}

bool ReadAhead::next() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return !pages_.empty() || done_; });
  if (pages_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  if (current_) spare_.push_back(std::move(current_));
  current_ = std::move(pages_.front());
  pages_.pop_front();
  lock.unlock();
  changed_.notify_all();
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i]->decoded = current_->decoded[i].get();
  }
  return true;
}

void ReadAhead::read_all() noexcept {
  std::exception_ptr error;
  try {
    while (!scan_.is_done()) {
      auto page = spare_page();
      read_page(*page);
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [&] { return pages_.size() < most_ahead || stopped_; });
      if (stopped_) break;
      pages_.push_back(std::move(page));
      lock.unlock();
      changed_.notify_all();
    }
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock{mutex_};
    error_ = error;
    done_ = true;
  }
  changed_.notify_all();
}

std::unique_ptr<ReadAhead::Page> ReadAhead::spare_page() {
  const std::lock_guard lock{mutex_};
  if (spare_.empty()) return std::make_unique<Page>();
  auto page = std::move(spare_.back());
  spare_.pop_back();
  return page;
}

void ReadAhead::read_page(Page& page) {
  page.batch = scan_.next();
  const auto read = page.batch.events;
  page.streams.clear();
  page.events.clear();
  page.events.reserve(read.size());
  std::size_t size = 0;
  for (const StoredEvent& event : read) size += EventPage::size_of(event);
  page.events.grow(std::max(size, EventPage::max_capacity));
  for (const StoredEvent& event : read) {
    if (page.streams.empty() || page.streams.back() != event.stream) {
      page.streams.push_back(event.stream);
    }
    page.events.add(event, page.streams.back());
  }
  page.batch.events = page.events.events();
  page.decoded.resize(seats_.size());
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i]->projector->decode(page.batch.events, page.decoded[i]);
  }
}

}  // namespace stela::projections
