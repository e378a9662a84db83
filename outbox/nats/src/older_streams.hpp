// What a consumer must wait for after a resize.
#pragma once

#include "envelope.hpp"
#include "message_source.hpp"
#include "reader_store.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace stela::nats {

/// After a resize, the predecessors of a message may be in other JetStream streams. So the first
/// message of a generation waits until the readers of those streams have passed the ends that were
/// seen when the message arrived. These ends are final: a relay publishes a generation only after
/// everything older. A reader that has reached a message of the generation is no longer waited for,
/// so no two readers wait for each other. Threads: one at a time.
class OlderStreams {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  explicit OlderStreams(const ReaderStore& reader) noexcept : reader_{reader} {}

  /// True if everything older than the event's generation is known to be handled, without asking.
  bool are_done_before(const ReceivedEvent& event) const;
  /// Asks how far the other readers are. Names the streams that it waits for, and how far; empty if
  /// there are none. BrokerFailed if the broker doesn't tell where a stream ends.
  std::string look(const ReceivedEvent& event, MessageSource& source, Steady now);

 private:
  /// The reader has nothing left of what the stream contained when first asked.
  bool is_at_its_end(const OtherReader& other, MessageSource& source, bool ask_again);

  const ReaderStore& reader_;
  /// For each store, the newest generation that has nothing left to wait for.
  std::map<std::string, std::int64_t> done_;
  /// The store and generation that it waits for, the ends seen when it arrived, and when to ask for
  /// them again.
  std::pair<std::string, std::int64_t> awaited_;
  std::map<std::string, std::uint64_t> ends_;
  Steady next_question_{};
};

}  // namespace stela::nats
