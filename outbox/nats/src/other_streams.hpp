// The JetStream streams that may still have what comes before a message of this one.
#pragma once

#include "pull.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stela::nats {

/// The other streams that consumers of this name read for the same inbox: after a resize, earlier
/// messages of a stream may still be in one of them.
/// Threads: one at a time.
class OtherStreams {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  /// Everything that was in one of them at the time that it returns is settled. Asks the broker,
  /// once a second at most. BrokerFailed if it doesn't say; it isn't asked again for a while then.
  Steady look(const std::vector<std::string>& streams, Pull& pull, Steady now);
  /// When more of it was settled last, as far as anybody has looked; the first look itself if
  /// nothing was since: what came before isn't known.
  Steady moved_at() const noexcept { return moved_at_; }
  /// Those that the broker didn't have when it was asked last.
  const std::set<std::string>& gone() const noexcept { return gone_; }

 private:
  /// Where a stream ended at some time: once that is settled, so is all that was there then.
  struct Mark {
    /// By the broker's clock, in nanoseconds.
    std::int64_t stream_made_at = 0;
    Steady made_at = {};
    std::uint64_t end = 0;
    std::uint64_t settled = 0;
    Steady settled_at = Steady::min();
  };
  void look_at(const std::string& stream, const Progress& progress, Steady now);

  std::map<std::string, Mark> marks_;
  std::set<std::string> gone_;
  Steady settled_at_ = Steady::min();
  Steady moved_at_ = Steady::min();
  Steady next_look_ = Steady::min();
};

}  // namespace stela::nats
