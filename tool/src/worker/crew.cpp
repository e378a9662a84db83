#include "worker/crew.hpp"

#include <utility>

namespace stela::tool {
namespace {

RelayOptions numbered(RelayOptions options, int index, int count) {
  if (!options.worker.empty() && count > 1) options.worker += "-" + std::to_string(index + 1);
  return options;
}

}  // namespace

Crew::Member::Member(Outbox& outbox, Statistics& statistics, const Options& options, int index)
    : broker{options.broker},
      measured{broker, statistics},
      relay{std::make_unique<Relay>(outbox, measured,
                                    numbered(options.relay, index, options.relays))} {}

Crew::Crew(Outbox& outbox, Statistics& statistics, const Options& options)
    : statistics_{statistics}, interval_{options.interval} {
  for (int i = 0; i < options.relays; ++i) {
    members_.push_back(std::make_unique<Member>(outbox, statistics, options, i));
  }
}

Crew::~Crew() {
  request_stop();
}

void Crew::note(int index, const RelayTick& tick) {
  statistics_.add(index, tick, std::chrono::steady_clock::now());
  if (listener_) listener_(relay(static_cast<std::size_t>(index)), tick);
}

RelayTick Crew::run_once() {
  const RelayTick tick = members_.front()->relay->run_once();
  try {
    note(0, tick);
  } catch (...) {
    hand_over();
    throw;
  }
  return tick;
}

void Crew::hand_over() {
  std::stop_source stopped;
  stopped.request_stop();
  members_.front()->relay->run(stopped.get_token());
}

void Crew::pause(std::chrono::microseconds time) {
  std::unique_lock lock{mutex_};
  pause_.wait_for(lock, stop_.get_token(), time, [] { return false; });
}

void Crew::run(int index) {
  Relay& mine = *members_[static_cast<std::size_t>(index)]->relay;
  mine.on_tick([this, index](const RelayTick& tick) {
    // A failure to report doesn't keep the relay from handing over.
    guarded([&] { note(index, tick); });
    if (interval_.count() > 0) pause(interval_);
  });
  guarded([&] { mine.run(stop_.get_token()); });
  const std::lock_guard lock{mutex_};
  --running_;
}

void Crew::guarded(FunctionRef<void()> work) {
  try {
    return work();
  } catch (...) {
    const std::lock_guard lock{mutex_};
    if (!failure_) failure_ = std::current_exception();
  }
  // A relay that fails ends the others too. The process's supervisor restarts all of them.
  request_stop();
}

void Crew::start() {
  running_ = static_cast<int>(members_.size());
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    threads_.emplace_back([this, i] { run(i); });
  }
}

bool Crew::has_ended() {
  const std::lock_guard lock{mutex_};
  return running_ == 0;
}

void Crew::join() {
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace stela::tool
