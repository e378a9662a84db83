// What a consumer waits for after a resize.
#pragma once

#include "envelope.hpp"
#include "message_source.hpp"
#include "reader_store.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace stela::nats {

/// After a resize, what comes before a message may be in other JetStream streams. So the first
/// message of a generation waits until the readers of those have passed the ends that they had when
/// it was met. These ends are final: a relay publishes a generation when everything older is
/// published. A reader that stands at a message of the generation, or has handled one, is waited
/// for no longer. So no two readers wait for each other. Threads: one at a time.
class OlderStreams {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  explicit OlderStreams(const ReaderStore& reader) noexcept : reader_{reader} {}

  /// What is older than the event's generation is handled, as far as is known without asking.
  bool are_done_before(const ReceivedEvent& event) const;
  /// Asks how far the other readers are. The streams whose readers it waits for, and up to where;
  /// empty if there are none. BrokerFailed if the broker doesn't say where a stream ends.
  std::string look(const ReceivedEvent& event, MessageSource& source, Steady now);
  /// Streams that it didn't wait for, as no stream can have such a name.
  const std::set<std::string>& gone() const noexcept { return gone_; }

 private:
  /// Nothing is left to the reader of what the stream had when it was asked for first.
  bool is_at_its_end(const OtherReader& other, MessageSource& source, bool ask_again);

  const ReaderStore& reader_;
  /// The newest generation of each store for which nothing was left to wait for.
  std::map<std::string, std::int64_t> done_;
  /// The store and the generation that is waited for, where streams ended when it was met, and when
  /// that is asked for again.
  std::pair<std::string, std::int64_t> awaited_;
  std::map<std::string, std::uint64_t> ends_;
  std::set<std::string> gone_;
  Steady next_question_{};
};

}  // namespace stela::nats
