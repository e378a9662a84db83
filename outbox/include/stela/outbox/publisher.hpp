// The port to a message broker: asynchronous, and honest about what it doesn't know.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// How the broker keeps the order of a partition, whoever sends to it. A fact of the database.
/// `stream`: each partition is a JetStream stream; messages are chained to the one before them, any
/// number in flight. `subject`: one stream for all, a subject for each partition, one message in
/// flight each. `none`: the broker takes what comes; duplicates carry the same id.
enum class Fence : std::uint8_t { stream, subject, none };

STELA_OUTBOX_EXPORT std::string_view to_string(Fence fence) noexcept;

/// What a fenced message must find at the end of its partition to be stored.
struct Predecessor {
  /// The broker's sequence of the last message; 0 for none.
  std::uint64_t broker_sequence = 0;
  /// That message's id; empty if it isn't known.
  std::string_view message_id = {};
};

/// One message on its way to the broker.
struct OutgoingMessage {
  /// Names the request in its answer; grows from one to the next.
  std::uint64_t request = 0;
  PartitionId partition = {};
  const StoredEvent& event;
  /// What the store is, for ever.
  std::string_view store_id = {};
  /// The event's id; with the number of the redelivery behind it for what is sent again.
  std::string_view message_id = {};
  /// 0 unless an operator had it sent again.
  std::int64_t redelivery = 0;
  /// The sequence of the message before it in its partition, 0 if there is none: lets a consumer
  /// see a gap.
  GlobalSequence previous = {};
  /// Unset in mode `none`.
  std::optional<Predecessor> predecessor = {};
};

/// A message that stands at the broker.
struct FoundMessage {
  std::uint64_t broker_sequence = 0;
  std::string message_id = {};
  /// What its headers say; a message without them isn't ours.
  bool is_ours = false;
  std::string store_id = {};
  GlobalSequence sequence = {};
  std::int64_t redelivery = 0;
};

struct Answer {
  enum class Kind : std::uint8_t {
    /// The session is open.
    connected,
    /// The session is over, or couldn't be opened: what is in flight is unknown.
    disconnected,
    /// Stored, at `broker_sequence`.
    stored,
    /// Somebody, perhaps we, stored it before; or its predecessor isn't the last message.
    stored_before,
    /// No answer in time, or none that can be read: the connection may be well all the same.
    unknown,
    /// This message will never be taken: too large.
    refused,
    /// This message wasn't taken, and it may be its own fault.
    rejected,
    /// The broker is full or overloaded.
    full,
    /// There is no such stream, or we may not write to it.
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
  /// For people: what the broker said.
  std::string detail = {};

  // Of `read_back`: the first and last sequence of the partition's stream, and what stands from the
  // asked-for sequence on. Fewer found than the sequences announce: some can't be read any more.
  // For `subject`: the first sequence of the stream, and the one that the next message of the
  // partition has to follow (0: none).
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  /// More stands behind what was found: then `last_sequence` is where the answer ends.
  bool has_more = false;
  /// Of the stream: so many messages between its first and its last are gone.
  std::uint64_t holes = 0;
  std::vector<FoundMessage> found = {};
};

/// Where a publisher puts its answers. It calls nothing of the publisher.
/// Threads: called from any.
class STELA_OUTBOX_EXPORT AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void take(Answer answer) = 0;
};

/// A message broker, of one relay at a time. No call waits for it: everything is answered through
/// the sink, each request once, or never when its session is over.
/// Threads: one at a time; the sink is called from any.
class STELA_OUTBOX_EXPORT Publisher {
 public:
  virtual ~Publisher() = default;

  virtual bool can(Fence fence) const noexcept = 0;
  /// Whether it is meant to publish payloads of this codec, as they are stored.
  virtual bool can(Codec) const noexcept { return true; }

  /// Ends the session that is open, if there is one, and begins another: nothing of the old one is
  /// answered any more, though what it sent may still arrive at the broker.
  virtual void connect(std::uint64_t session, AnswerSink& sink) = 0;
  /// Ends the session. Once it returns the sink isn't being called, and won't be.
  virtual void disconnect() noexcept = 0;

  /// Once the session is `connected`. The message needn't outlive the call.
  virtual void publish(const OutgoingMessage& message) = 0;
  /// What stands at the end of the partition, from `from` on (at most some thousand messages); once
  /// the session is `connected`. A newer one of the partition replaces it. Without success it is
  /// answered `misconfigured`, `full` (the broker can't say now) or `unknown`.
  virtual void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) = 0;
  /// Does the server answer on this connection? Answered `alive`, or by the end of the session.
  virtual void probe(std::uint64_t request) = 0;
  /// Nothing more follows for now: send what was gathered.
  virtual void flush() = 0;

 private:
  friend class Relay;
  /// By a relay that works: a second one would end its session, and it that one's.
  std::atomic<bool> is_in_use_{false};
};

}  // namespace stela
