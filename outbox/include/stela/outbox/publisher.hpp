// The port to a message broker. It is asynchronous and may answer that a result is unknown.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/states.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// How the broker keeps a partition's messages in order, whichever worker publishes them. A fact of
/// the database. `stream`: each partition is a JetStream stream, each message names the one before
/// it, and any number may be in flight. `subject`: one stream for all partitions, one subject per
/// partition, and one message in flight for each. `none`: the broker accepts every message;
/// duplicates carry the same id.
enum class Fence : std::uint8_t { stream, subject, none };

STELA_OUTBOX_EXPORT std::string_view to_string(Fence fence) noexcept;

/// The message that must be last in the partition for a fenced message to be stored.
struct Predecessor {
  /// The broker's sequence of the last message; 0 for none.
  std::uint64_t broker_sequence = 0;
  /// That message's id; empty if unknown.
  std::string_view message_id = {};
};

/// The generation that a message is published under. Each resize begins a new one, in which later
/// events are spread over another number of partitions. It is published only after all older ones.
struct GenerationMark {
  std::int64_t number = 1;
  /// No event of this generation has a lower sequence, and every event of an earlier one has.
  GlobalSequence first = {};
};

/// One message on its way to the broker.
struct OutgoingMessage {
  /// Identifies the request in its answer. Each request has a higher number than the one before.
  std::uint64_t request = 0;
  PartitionId partition = {};
  const StoredEvent& event;
  /// The permanent identity of the store.
  std::string_view store_id = {};
  /// The event's id, followed by the redelivery's number if it is one.
  std::string_view message_id = {};
  /// The number of the redelivery that an operator asked for, or 0.
  std::int64_t redelivery = 0;
  /// The sequence of the message before it in its partition, or 0. Consumers use it to detect gaps.
  GlobalSequence previous = {};
  /// Unset in mode `none`.
  std::optional<Predecessor> predecessor = {};
  /// Unset before the first resize, and where all partitions share one broker stream, which then
  /// has every earlier message.
  std::optional<GenerationMark> generation = {};
};

/// A message at the broker.
struct FoundMessage {
  std::uint64_t broker_sequence = 0;
  std::string message_id = {};
  /// Whether its headers say that it comes from Stela. Without them it is foreign.
  bool is_ours = false;
  std::string store_id = {};
  GlobalSequence sequence = {};
  std::int64_t redelivery = 0;
  /// The event type that it states.
  std::string type = {};
};

/// The most bytes that a message may have.
struct SizeLimit {
  /// 0 if there is no limit, or none is known.
  std::int64_t bytes = 0;
  /// The setting that imposes the limit, for people: "max_payload of the server".
  std::string setting = {};
};

struct Answer {
  enum class Kind : std::uint8_t {
    /// The session is open.
    connected,
    /// The session has ended, or couldn't be opened. The fate of messages in flight is unknown.
    disconnected,
    /// Stored, at `broker_sequence`.
    stored,
    /// Stored before, perhaps by this relay; or its predecessor isn't the last message.
    stored_before,
    /// No answer in time, or an unreadable one. The connection may still work.
    unknown,
    /// The broker will never accept this message: it is too large.
    refused,
    /// The broker didn't accept this message, and the message itself may be the reason.
    rejected,
    /// The broker is full or overloaded.
    full,
    /// The stream is missing, or the relay has no permission to write to it.
    misconfigured,
    /// The answer to `read_back`.
    read_back,
    /// The answer to `probe`.
    alive,
  };

  std::uint64_t session = 0;
  std::uint64_t request = 0;
  Kind kind = Kind::unknown;
  std::uint64_t broker_sequence = 0;
  /// The broker's words, for people.
  std::string detail = {};
  /// Set in an answer that reports a problem.
  FailureClass failure = FailureClass::other;
  /// For `refused`: the limit, if the message exceeds it. For `read_back`: the stream's limit.
  SizeLimit size_limit = {};

  // For `read_back`: the first and last sequence of the partition's stream, and the messages from
  // the requested sequence on. Fewer messages than the sequences imply means that some can no
  // longer be read. For `subject`: the first sequence of the stream, and the sequence that the
  // partition's next message must follow (0: none).
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  /// More messages follow, so `last_sequence` is only the end of this answer.
  bool has_more = false;
  /// How many messages of the stream are missing between its first and its last.
  std::uint64_t holes = 0;
  /// The stream drops old messages, so it may not begin at 1.
  bool drops_old = false;
  /// How full the stream is, from 0 to 1, and by which limit; 0 if it has none.
  double fullness = 0;
  std::string limit = {};
  std::vector<FoundMessage> found = {};
};

/// Receives a publisher's answers. It never calls the publisher. Threads: called from any.
class STELA_OUTBOX_EXPORT AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void take(Answer answer) = 0;
};

/// A message broker, used by one relay at a time. No call waits for the broker. Each request is
/// answered once, through the sink, or never if its session has ended. Threads: one at a time; the
/// sink is called from any.
class STELA_OUTBOX_EXPORT Publisher {
 public:
  virtual ~Publisher() = default;

  virtual bool can(Fence fence) const noexcept = 0;
  /// Whether it can publish payloads of this codec, as they are stored.
  virtual bool can(Codec) const noexcept { return true; }

  /// Begins a session, after ending an open one. Requests of the old session are no longer
  /// answered, but messages that it sent may still arrive at the broker.
  virtual void connect(std::uint64_t session, AnswerSink& sink) = 0;
  /// Ends the session. After it returns, the sink is no longer called.
  virtual void disconnect() noexcept = 0;

  /// Call it after `connected`. The message needn't outlive the call.
  virtual void publish(const OutgoingMessage& message) = 0;
  /// Reads the end of the partition, from `from` on, at most a few thousand messages. Call it after
  /// `connected`. A newer request for the same partition replaces an older one. On failure the
  /// answer is `misconfigured`, `full` (the broker can't tell now) or `unknown`.
  virtual void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) = 0;
  /// Checks whether the server answers on this connection. The answer is `alive`, or the end of the
  /// session.
  virtual void probe(std::uint64_t request) = 0;
  /// Sends collected requests: no more follow for now.
  virtual void flush() = 0;

 private:
  friend class Relay;
  /// Set by a working relay. Two relays would end each other's sessions.
  std::atomic<bool> is_in_use_{false};
};

}  // namespace stela
