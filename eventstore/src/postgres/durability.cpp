#include "postgres/durability.hpp"

#include "postgres/standby_wait.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <chrono>
#include <string>

namespace stela::postgres {
namespace {

/// How long a flush may take to end once it no longer waits for a standby: it may look once more, a
/// second after it saw none.
constexpr std::chrono::milliseconds longest_end{2000};

/// Marks the flush as ended, whether it succeeded or not.
class Turn {
 public:
  Turn(std::unique_lock<std::mutex>& lock, bool& is_busy, std::condition_variable& ended)
      : lock_{lock}, is_busy_{is_busy}, ended_{ended} {
    is_busy_ = true;
    lock_.unlock();
  }
  ~Turn() {
    if (!lock_.owns_lock()) lock_.lock();
    is_busy_ = false;
    ended_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
  bool& is_busy_;
  std::condition_variable& ended_;
};

}  // namespace

bool Durability::covers(const Uuid& run, const std::optional<std::int64_t>& sequence,
                        std::uint64_t wanted) const noexcept {
  if (run_ != run) return false;
  return done_ >= wanted || (sequence && *sequence <= sequence_);
}

bool Durability::flush(const Uuid& run, std::optional<std::int64_t> sequence, Time deadline) {
  std::unique_lock lock{mutex_};
  // A flush that has already begun may not cover the caller's commits.
  const std::uint64_t wanted = begun_ + 1;
  while (true) {
    if (covers(run, sequence, wanted)) return true;
    if (done_ >= wanted) return false;
    if (is_busy_) {
      if (ended_.wait_until(lock, deadline) == std::cv_status::no_timeout) continue;
      lock.unlock();
      // One thread asks for all, because each question takes a connection.
      const std::lock_guard asking{asking_};
      lock.lock();
      if (why_.empty()) find_why(lock);
      if (covers(run, sequence, wanted)) return true;
      throw StoreBusy{why_};
    }
    const std::uint64_t mine = ++begun_;
    const Turn turn{lock, is_busy_, ended_};
    std::optional<std::int64_t> covered;
    try {
      covered = flush_now(run, deadline);
    } catch (const StoreBusy& e) {
      const std::lock_guard noting{mutex_};
      why_ = e.what();
      throw;
    }
    if (!covered) return false;
    lock.lock();
    why_.clear();
    if (run_ != session_->run()) sequence_ = 0;
    run_ = session_->run();
    sequence_ = std::max(sequence_, *covered);
    done_ = mine;
    return run_ == run;
  }
}

void Durability::find_why(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const std::string standby = find_awaited_standby(sessions_);
  lock.lock();
  if (standby.empty()) {
    // The flushing thread, perhaps with the same deadline, is about to return or to give up.
    ended_.wait_for(lock, longest_end, [&] { return !is_busy_ || !why_.empty(); });
  }
  if (why_.empty()) why_ = standby.empty() ? "the server hasn't flushed its log in time" : standby;
}

void Durability::note(const Uuid& run, std::int64_t sequence) noexcept {
  const std::lock_guard lock{mutex_};
  if (run_.is_nil()) run_ = run;
  if (run_ == run) sequence_ = std::max(sequence_, sequence);
  why_.clear();
}

std::optional<std::int64_t> Durability::flush_now(const Uuid& run, Time deadline) {
  if (session_ != nullptr) {
    try {
      // A restored dump has replaced the tables, and the caller or this session hasn't noticed yet.
      if (session_->run() != run) session_->find_run();
      return flush_on_session(deadline);
    } catch (const ConnectionLost&) {
      // The kept connection was lost, perhaps when the server ended.
    }
  }
  session_ = sessions_.open();
  if (session_->run().is_nil()) {
    session_.reset();
    return {};
  }
  return flush_on_session(deadline);
}

std::int64_t Durability::flush_on_session(Time deadline) {
  Connection& connection = session_->connection;
  try {
    StandbyWait standby{connection, {sessions_, deadline}};
    Connection::Pipeline pipeline{connection};
    pipeline.add(begin_sql);
    pipeline.add(sql::commit_confirmed{});
    const auto flushed = pipeline.add(sql::flush_through{});
    // Behind a pooler, the run may have changed. Asking for it costs as much as the other steps.
    const bool is_pooled = connection.options().is_pooled;
    std::optional<Place<sql::server_run>> run;
    if (is_pooled) run = pipeline.add(sql::server_run{});
    pipeline.add("COMMIT");
    auto results = pipeline.run_all("the flush");
    check_committed(results.back());
    standby.check_confirmed();
    if (run && !take_run(connection, run->row(results))) {
      throw ConnectionLost{"the server was started again behind the pooler"};
    }
    return flushed.row(results).last();
  } catch (...) {
    session_.reset();
    throw;
  }
}

}  // namespace stela::postgres
