// Reads and decodes one page while the previous one is projected.
#pragma once

#include "database/event_page.hpp"
#include "scan.hpp"
#include "seat.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace stela::projections {

/// Its thread reads pages of a scan, at most two ahead, and decodes them for each seat. The
/// destructor joins it. Threads: one at a time, besides its own.
class ReadAhead {
 public:
  ReadAhead(Scan& scan, std::span<Seat* const> seats);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Waits for the next page, and gives its decoded events to the seats; false at the end. Rethrows
  /// errors of reading.
  bool next();
  const Batch& batch() const noexcept { return current_->batch; }

 private:
  /// A page and everything that its events point to.
  struct Page {
    Batch batch;
    EventPage events;
    std::deque<StreamId> streams;
    std::vector<std::unique_ptr<detail::AnyDecoded>> decoded;
  };

  static constexpr std::size_t most_ahead = 2;

  void read_all() noexcept;
  void read_page(Page& page);
  std::unique_ptr<Page> spare_page();

  Scan& scan_;
  const std::vector<Seat*> seats_;
  std::unique_ptr<Page> current_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Guarded by mutex_.
  std::deque<std::unique_ptr<Page>> pages_;
  /// Projected pages, whose memory is reused.
  std::vector<std::unique_ptr<Page>> spare_;
  std::exception_ptr error_;
  bool done_ = false;
  bool stopped_ = false;
  /// Declared last, so that everything above exists while it runs.
  std::thread reader_;
};

}  // namespace stela::projections
