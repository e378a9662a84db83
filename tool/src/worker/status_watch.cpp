#include "worker/status_watch.hpp"

#include "diagnosis/facts.hpp"

#include <stela/framework/error.hpp>

#include <array>

namespace stela::tool {
namespace {

/// The largest number of batches timed at each look.
constexpr int timed_batches = 50;

}  // namespace

StatusWatch::Seen StatusWatch::look(std::chrono::milliseconds age) {
  const std::lock_guard lock{mutex_};
  const Steady now = std::chrono::steady_clock::now();
  if (has_looked_ && now - looked_at_ < age) return seen_;
  looked_at_ = now;
  try {
    seen_.is_stale = true;
    seen_.status = operations_.status();
    seen_.is_stale = false;
    seen_.beside = {};
    ask_followers(store_, seen_.beside);
    const auto unwritable = place_.find_write_problem();
    seen_.problem = unwritable ? unwritable->what : std::string{};
    if (unwritable) seen_.beside.store_remedy = way_to_write;
    time_publications();
  } catch (const Error& e) {
    seen_.problem = e.what();
    seen_.beside.store_remedy = way_to_reach(e.code(), place_.is_on_server());
  }
  has_looked_ = true;
  return seen_;
}

StatusWatch::Seen StatusWatch::look_closely(std::chrono::milliseconds age) {
  Seen seen = look(age);
  const std::lock_guard lock{mutex_};
  const Steady now = std::chrono::steady_clock::now();
  if (opened_at_ == Steady{} || now - opened_at_ >= age) {
    opened_at_ = now;
    try {
      place_.open({.is_report = true});
      schema_problem_.clear();
    } catch (const SchemaMismatch& e) {
      schema_problem_ = e.what();
    } catch (const StoreBusy&) {
      // Another process writes, which is normal.
    } catch (const Error& e) {
      schema_problem_ = e.what();
    }
  }
  if (seen.problem.empty()) seen.problem = schema_problem_;
  return seen;
}

void StatusWatch::time_publications() {
  const bool first = timed_until_ == Timestamp{};
  Timestamp until = first ? system_clock().now() : timed_until_;
  for (const PublishedBatch& batch : operations_.batches({}, timed_batches)) {
    if (batch.published_at <= timed_until_ || first) break;
    until = std::max(until, batch.published_at);
    if (batch.redelivery > 0) continue;
    const std::array<GlobalSequence, 2> ends{batch.first, batch.last};
    const std::size_t count = batch.first == batch.last ? 1 : 2;
    for (const StoredEvent& event : store_.read_at({ends.data(), count})) {
      statistics_.add_end_to_end(batch.published_at - event.recorded_at, looked_at_);
    }
  }
  timed_until_ = until;
}

bool StatusWatch::ask(FunctionRef<void(OutboxOperations&)> question) try {
  const std::lock_guard lock{mutex_};
  question(operations_);
  return true;
} catch (const Error&) {
  return false;
}

}  // namespace stela::tool
