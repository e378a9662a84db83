// The work of a consumer.
#pragma once

#include "follow/blame.hpp"
#include "follow/caught.hpp"
#include "follow/trouble.hpp"
#include "message_source.hpp"
#include "older_streams.hpp"
#include "reader_store.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela::nats {

/// Threads: one at a time.
class Consumer::Worker {
 public:
  Worker(Store& store, const ConsumerOptions& options, ConsumerPorts ports);
  ~Worker();

  void add(std::string_view event, std::unique_ptr<Handler> handler);
  void on_tick(std::function<void(const ConsumerTick&)> listener);
  ConsumerTick run_once();
  void run(std::stop_token stop);

 private:
  using Steady = std::chrono::steady_clock::time_point;
  static constexpr double backoff_jitter = 0.25;
  /// A remark about a message, logged once its transaction is committed.
  struct Note {
    LogLevel level;
    std::string_view name;
    const Delivery* message;
    std::string problem;
  };
  /// The result of a transaction on the first messages of the queue.
  struct Together {
    std::size_t done = 0;
    ConsumerTick tick = {};
    std::int64_t parked_bytes = 0;
    std::vector<Note> notes = {};
    std::vector<follow::CaughtStatement> caught = {};
    bool has_called_handler = false;
    /// The handler of the next message has failed.
    bool has_failed = false;
  };

  // The loop: consumer_worker.cpp.
  /// True if something was done.
  bool turn(std::chrono::milliseconds wait);
  bool try_turn();
  /// Drops uncommitted work, so that its messages are read again.
  void start_over() noexcept;
  /// True if this process is the reader.
  bool hold_lease();
  bool acquire_lease();
  void note_pause();
  void begin_reading();
  void find_place(const StreamEnds& ends);
  void check_stream(const StreamEnds& ends);
  void begin_behind(std::uint64_t position, const StreamEnds& ends, std::uint64_t known_through);
  std::uint64_t find_beginning(const StreamEnds& ends) const;
  std::chrono::milliseconds backoff_left() const;
  bool is_full_of_parked();
  void note_broker_works();
  void note_broker_trouble(const Error& trouble);
  void rest(std::chrono::milliseconds wait) { ports_.rest(stop_, wait); }
  void report();
  ConsumerTick take_tick();

  // Messages: consumer_handling.cpp.
  void handle_queue();
  /// Counts the next messages that needn't wait for another reader.
  std::size_t count_ready() const;
  void wait_for_older();
  void handle_together(std::size_t count, Together& together);
  void transact(FunctionRef<void(Transaction&)> work);
  void handle_next(Transaction& transaction, Together& together);
  void meet(database::Connection& connection, const Delivery& delivery, Together& together);
  void park(database::Connection& connection, const Delivery& delivery, Together& together,
            const Parking& parking);
  void park_next(database::Connection& connection, Together& together, const Parking& parking);
  void call_handler(Transaction& transaction, const ReceivedEvent& event, Together& together);
  void finish(const Together& together);
  void take_failure(const follow::Fault& failed);
  void take_committed(const Together& together, const follow::Fault& failed);
  void park_first(int attempts, const std::string& error);
  void leave_to_newer(const follow::Fault& failed);
  bool charge_first();
  bool is_lost_with_session(const Error& error, const Together& together) const;
  void retry_parked();
  void retry(const ToRetry& parked);

  void log(LogLevel level, std::string_view name, const Delivery& delivery,
           const std::string& problem) const;
  /// About the broker or the database, not about a message.
  void log(LogLevel level, std::string_view name, std::string_view problem) const;
  Handler* handler_of(const std::string& event) const noexcept;
  Steady now() const { return store_.database().clock().steady_now(); }
  follow::Backoff backoff() const {
    return {options_.retry_backoff, options_.retry_backoff_max, backoff_jitter};
  }
  std::chrono::microseconds backoff_after(int failures) const {
    return backoff().after(failures, ports_.random);
  }

  Store& store_;
  const ConsumerOptions options_;
  /// Names this consumer to writers that wait for its handler.
  const std::string who_ = "consumer '" + options_.name + '\'';
  ConsumerPorts ports_;
  ReaderStore reader_;
  std::unique_ptr<MessageSource> source_;
  /// The source reads from the position that came with the lease.
  bool is_reading_ = false;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::function<void(const ConsumerTick&)> listener_;
  std::stop_token stop_;

  /// Messages received but not yet handled.
  std::deque<Delivery> queue_;
  /// Handle this many of the next messages in one transaction each, and count their attempts first:
  /// a handler misused a shared transaction, or the previous process may have died of one of them.
  std::size_t alone_ = 0;
  /// The message whose attempt was counted in advance and hasn't ended; 0 if there is none.
  std::int64_t charged_ = 0;
  OlderStreams older_{reader_};
  Steady next_look_{};
  /// The message that this process left to a process that knows its version.
  std::int64_t left_to_newer_ = 0;
  /// A lower bound until it matters: operators may have removed messages.
  std::int64_t parked_bytes_ = 0;
  Steady next_retry_{};

  /// What hasn't been reported yet, and the last report.
  ConsumerTick tick_;
  ConsumerTick reported_;
  /// Turns in a row that failed, and the troubles last logged: the broker's, and others.
  int troubles_ = 0;
  std::string broker_trouble_;
  follow::Repetition said_;
  std::string standstill_;
};

}  // namespace stela::nats
