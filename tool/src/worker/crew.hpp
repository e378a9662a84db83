// The relays of this process, each on its own thread.
#pragma once

#include "worker/measured_publisher.hpp"
#include "worker/statistics.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox/relay.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::tool {

/// Threads: one at a time. It has one for each relay.
class Crew {
 public:
  struct Options {
    int relays = 1;
    RelayOptions relay = {};
    nats::PublisherOptions broker = {};
    std::chrono::milliseconds interval{0};
  };
  using OnTick = std::function<void(const Relay&, const RelayTick&)>;

  /// UsageError if the options contradict each other or the database. `outbox` and `statistics`
  /// must outlive it.
  Crew(Outbox& outbox, Statistics& statistics, const Options& options);
  /// Requests a stop, and waits.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// The listener is called on the relays' threads.
  void on_tick(OnTick listener) { listener_ = std::move(listener); }

  /// Runs one tick of the first relay, on this thread.
  RelayTick run_once();
  /// After ticks, hands over the first relay's partitions.
  void hand_over();

  /// Starts all relays.
  void start();
  void request_stop() { stop_.request_stop(); }
  bool stop_requested() const noexcept { return stop_.stop_requested(); }
  /// Sleeps for this time, or until a stop is requested.
  void pause(std::chrono::microseconds time);
  /// True once all relays have ended.
  bool has_ended();
  /// Waits for all relays to end, and rethrows the error that ended one early.
  void join();

  std::size_t size() const noexcept { return members_.size(); }
  const Relay& relay(std::size_t index) const noexcept { return *members_[index]->relay; }

 private:
  struct Member {
    Member(Outbox& outbox, Statistics& statistics, const Options& options, int index);

    nats::Publisher broker;
    MeasuredPublisher measured;
    std::unique_ptr<Relay> relay;
  };

  void note(int index, const RelayTick& tick);
  void run(int index);
  /// Keeps an exception for `join`, and requests a stop.
  void guarded(FunctionRef<void()> work);

  Statistics& statistics_;
  const std::chrono::milliseconds interval_;
  OnTick listener_;
  std::stop_source stop_;
  std::vector<std::unique_ptr<Member>> members_;
  std::mutex mutex_;
  std::condition_variable_any pause_;
  // Guarded by mutex_.
  std::exception_ptr failure_;
  int running_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace stela::tool
