// A relay as somebody writes it who needs just this one: bare statements, bare nats.c.
#pragma once

#include "raw.hpp"
#include "raw_nats.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace stela::bench {

/// Puts every event of the database into its outbox again, as if nothing had been published and
/// nobody had relayed it.
void refill_outbox(const std::string& path);

/// The id that the database has for ever.
std::string store_id_of(const std::string& path);

/// As the first nine columns of a row have it.
inline RawEvent event_in(const RawStatement& row) {
  return {.sequence = row.integer(0),
          .version = row.integer(1),
          .published_before = row.integer(2),
          .recorded_at = row.integer(3),
          .id = row.bytes(4),
          .stream = row.bytes(5),
          .type = row.bytes(6),
          .correlation = row.bytes(7),
          .payload = row.bytes(8)};
}

/// Reads what waits behind the last message that it has read.
/// Threads: one at a time.
class RawOutbox {
 public:
  explicit RawOutbox(const std::string& path);

  /// Calls `use(event)` for each of the next messages, at most `limit`. How many there were.
  template <class F>
  int next(int limit, F&& use) {
    next_.bind(1, behind_);
    next_.bind(2, limit);
    int count = 0;
    for (; next_.step(); ++count) {
      const RawEvent event = event_in(next_);
      behind_ = event.sequence;
      use(event);
    }
    next_.reset();
    return count;
  }
  std::int64_t last_read() const noexcept { return behind_; }

  /// Notes that these are published: `count` messages from `first` to `last`.
  void mark(std::int64_t first, std::int64_t last, std::int64_t count);

 private:
  RawDatabase database_;
  RawStatement next_;
  RawStatement begin_;
  RawStatement remove_;
  RawStatement batch_;
  RawStatement advance_;
  RawStatement commit_;
  std::int64_t behind_ = 0;
};

/// An event whose bytes are its own.
struct KeptEvent {
  explicit KeptEvent(const RawEvent& from, int of_partition = 0);
  KeptEvent(KeptEvent&&) = default;
  KeptEvent& operator=(KeptEvent&&) = default;

  RawEvent event;
  int partition;

 private:
  std::string bytes_;
};

/// Everything that waits in `path`, of all partitions, in the order of its sequences.
void keep_all(const std::string& path, std::vector<KeptEvent>& kept);

struct RawRelayOptions {
  bool chained = false;
  int batch_size = 500;
  int batches_in_flight = 4;
};

/// Publishes all that waits in `outbox`.
template <class Outbox>
void relay_bare(Outbox& outbox, RawEnvelope& envelope, RawNats& nats,
                const RawRelayOptions& options) {
  struct Batch {
    std::int64_t first = 0;
    std::int64_t last = 0;
    int count = 0;
    /// So many are stored when all of it is.
    std::uint64_t end = 0;
  };
  std::deque<Batch> in_flight;
  std::uint64_t sent = 0;
  for (bool more = true; more || !in_flight.empty();) {
    while (more && static_cast<int>(in_flight.size()) < options.batches_in_flight) {
      Batch batch;
      batch.count = outbox.next(options.batch_size, [&](const RawEvent& event) {
        if (batch.first == 0) batch.first = event.sequence;
        nats.publish(envelope.make(event));
      });
      more = batch.count == options.batch_size;
      if (batch.count == 0) break;
      batch.last = outbox.last_read();
      batch.end = sent += static_cast<std::uint64_t>(batch.count);
      in_flight.push_back(batch);
    }
    if (in_flight.empty()) break;
    nats.wait_for(in_flight.front().end);
    outbox.mark(in_flight.front().first, in_flight.front().last, in_flight.front().count);
    in_flight.pop_front();
  }
}

/// Publishes all that waits in `path`.
void relay_bare(const std::string& path, RawNats& nats, const RawRelayOptions& options);

}  // namespace stela::bench
