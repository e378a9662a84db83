// JetStream streams as a consumer reads them, in memory, and what may go wrong between the two.
#pragma once

#include "message_source.hpp"
#include "simulation/consumers/stage.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::sim {

/// A message as a relay sent it, or somebody else.
struct SentMessage {
  std::string subject = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string payload = {};
  /// The event's number in the writer's list; -1 for none.
  int event = -1;
};

struct StoredMessage {
  std::uint64_t sequence = 0;
  /// Nanoseconds.
  std::int64_t time = 0;
  SentMessage sent = {};
};

/// One stream.
struct BrokerStream {
  std::int64_t made_at = 0;
  /// Where the next message will stand.
  std::uint64_t end = 1;
  std::uint64_t first = 1;
  std::map<std::uint64_t, StoredMessage> messages = {};

  std::uint64_t last() const noexcept { return end - 1; }
  /// The last message that is there and that the filter lets through.
  std::optional<std::uint64_t> find_last(const std::string& filter) const;
  /// The first one after that place.
  std::optional<std::uint64_t> find_next(const std::string& filter, std::uint64_t position) const;
};

/// An empty filter lets everything through; others are the subject itself.
bool lets_through(const std::string& filter, const StoredMessage& message) noexcept;

/// What goes wrong at the broker and on the lines.
struct BrokerFaults {
  bool is_down = false;
  /// Of each answer: it doesn't come.
  double silence = 0;
  /// Of each fetch: the connection breaks, or a message of it gets lost.
  double break_off = 0;
  double hole = 0;
  /// Of each fetch: the broker has forgotten who reads.
  double forget = 0;
  Time round_trip = ms;
};

class Broker {
 public:
  explicit Broker(Stage& stage);

  /// Null if there is no such stream.
  BrokerStream* find(const std::string& name);
  const std::map<std::string, BrokerStream>& streams() const noexcept { return streams_; }
  /// Makes the stream if it isn't there.
  void publish(const std::string& stream, SentMessage message);

  /// Removes what is before `sequence`.
  void purge(BrokerStream& stream, std::uint64_t sequence);
  void erase(BrokerStream& stream, std::uint64_t sequence);
  void make_again(BrokerStream& stream) { stream = {.made_at = time()}; }
  void restart() noexcept { ++incarnation; }
  /// As if the files were restored from a copy: its last messages are gone.
  void lose_tail(BrokerStream& stream, std::size_t count);

  std::int64_t time() noexcept;

  BrokerFaults faults;
  /// Sources with another number aren't connected any more.
  std::uint64_t incarnation = 0;

 private:
  Stage& stage_;
  std::map<std::string, BrokerStream> streams_;
  std::int64_t last_time_ = 0;
};

/// A process that reads: it waits while the broker works, and may be interrupted then.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void wait(Time duration) = 0;
};

std::unique_ptr<nats::MessageSource> connect(Broker& broker, Chance& chance, Waiter& waiter,
                                             const nats::ConsumerOptions& options);

}  // namespace stela::sim
