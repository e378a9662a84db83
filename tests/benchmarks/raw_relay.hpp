// Relays what waits in Stela's tables by bare statements: the baseline of the relay's figures.
#pragma once

#include "memory_broker.hpp"
#include "raw.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

/// Reads a batch with its events, hands it to the broker and marks it in one transaction: changes
/// the same rows as a relay of Stela's, and checks nothing.
/// Threads: one at a time.
class RawRelay {
 public:
  /// With `full_sync` each mark takes the log to the disk, and with it what was appended before.
  RawRelay(const std::string& path, const RawOptions& options, int batch);

  /// Publishes everything that waits; how much that was.
  std::int64_t drain();

  /// Publishes the next batch; the last sequence of it, 0 if nothing waits.
  std::int64_t publish_batch();
  /// Marks what publish_batch published.
  void mark();

  RawDatabase& database() noexcept { return database_; }

 private:
  void read_event();
  std::string_view name_of(std::int64_t stream);

  RawDatabase database_;
  RawStatement next_;
  RawStatement name_;
  RawStatement begin_;
  RawStatement delete_;
  RawStatement advance_;
  RawStatement log_;
  RawStatement commit_;
  MemoryBroker broker_;
  /// The event that is at hand: what the headers of a message say.
  struct Event {
    std::array<char, 36> id{};
    std::string_view stream;
    std::int64_t version = 0;
    std::int64_t kind = 0;
    std::int64_t recorded_at = 0;
    std::string_view correlation;
    std::string_view causation;
    std::int64_t published_before = 0;
  };
  Event event_;
  /// By the numbers of their streams, as they were met.
  std::vector<std::string> names_;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace stela::bench
