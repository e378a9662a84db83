// The JetStream streams that may still have what comes before a message of this one.
#pragma once

#include "pull.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stela::nats {

/// The other streams that consumers of this name read for the same inbox: after a resize, earlier
/// messages of a stream may still be in one of them.
/// Threads: one at a time.
class OtherStreams {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  struct Standing {
    /// Everything that was in one of them at this time is settled.
    Steady settled_at = Steady::min();
    /// When more of it was settled last, as far as anybody has looked.
    Steady moved_at = Steady::min();
  };

  /// Asks the broker, once a second at most. BrokerFailed if it doesn't say; it isn't asked again
  /// for a while then.
  Standing look(const std::vector<std::string>& streams, Pull& pull, Steady now);

 private:
  /// Where a stream ended at some time: once that is settled, so is all that was there then.
  struct Mark {
    Steady made_at;
    std::uint64_t end = 0;
    std::uint64_t settled = 0;
    Steady settled_at = Steady::min();
  };
  void look_at(const std::string& stream, const Progress& progress, Steady now);

  std::map<std::string, Mark> marks_;
  Standing standing_;
  Steady next_look_ = Steady::min();
};

}  // namespace stela::nats
