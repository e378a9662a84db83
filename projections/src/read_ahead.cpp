#include "read_ahead.hpp"

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
  for (Seat* const seat : seats_) seat->decoded.reset();
}

bool ReadAhead::next() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return !pages_.empty() || done_; });
  if (pages_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  current_ = std::move(pages_.front());
  pages_.pop_front();
  lock.unlock();
  changed_.notify_all();
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i]->decoded = std::move(current_->decoded[i]);
  }
  return true;
}

void ReadAhead::read_all() noexcept {
  std::exception_ptr error;
  try {
    while (!scan_.is_done()) {
      auto page = read_page();
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

std::unique_ptr<ReadAhead::Page> ReadAhead::read_page() {
  auto page = std::make_unique<Page>();
  page->batch = scan_.next();
  const auto read = page->batch.events;
  page->events.reserve(read.size());
  page->events.grow();
  page->own.reserve(read.size());
  for (const StoredEvent& event : read) {
    if (page->streams.empty() || page->streams.back() != event.stream) {
      page->streams.push_back(event.stream);
    }
    page->events.add(event);
    const StoredEvent& copy = page->events.events().back();
    page->own.push_back({copy.sequence, page->streams.back(), copy.version, copy.kind, copy.id,
                         copy.recorded_at, copy.correlation, copy.causation_id, copy.metadata,
                         copy.published_before, copy.payload});
  }
  page->batch.events = page->own;
  for (Seat* const seat : seats_) {
    page->decoded.push_back(seat->projector->decode(page->batch.events));
  }
  return page;
}

}  // namespace stela::projections
