// Finds the ends of partitions at the broker by requests to the JetStream API.
#pragma once

#include "byte_window.hpp"
#include "streams.hpp"
#include "subject_layout.hpp"

#include <stela/nats/publisher.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stela::nats {

/// A request to the JetStream API. `number` identifies its reply.
struct ApiRequest {
  std::uint64_t number = 0;
  std::string subject = {};
  std::string body = {};
};

/// The results of a step.
struct Steps {
  std::vector<ApiRequest> requests = {};
  std::vector<Answer> answers = {};
};

/// Reads any number of partitions back at once, independently: first the stream's present state,
/// creating a missing stream if allowed, then its messages, many at a time. Requests in flight of
/// all partitions are bounded in messages and bytes, and take turns; over a slow line the bound
/// shrinks until replies come in time. A read-back requests messages during the first quarter of
/// publish_timeout. By the half it finishes with what has arrived, if that is enough to continue
/// from. A state machine: it sends nothing and waits for nothing. A request without a reply is
/// given up publish_timeout after it was sent, as soon as anything else happens.
/// Threads: one at a time.
class ReadBacks {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Both references must outlive it.
  ReadBacks(const PublisherOptions& options, const SubjectLayout& layout)
      : options_{options}, layout_{layout}, api_{api_prefix(options.api)} {}

  /// Reads a partition back, and drops an earlier read-back of it.
  Steps begin(std::uint64_t request, PartitionId partition, std::uint64_t from, Time now);
  /// Creates the one stream of mode `none` if it is missing, then answers `connected`.
  Steps open(Time now);

  Steps on_reply(std::uint64_t number, std::string_view reply, Time now);
  /// The subject has no responders.
  Steps on_no_responders(std::uint64_t number, Time now);
  /// The server denies sending to `subject`: no reply will come.
  Steps on_denied(std::string_view subject, std::string_view why, Time now);

 private:
  enum class Step : std::uint8_t { look, make, read };

  /// A request in flight.
  struct Asked {
    PartitionId partition = {};
    Step step = Step::look;
    std::size_t slot = 0;
    std::size_t bytes = 0;
    Time since = {};
    std::string subject = {};
    /// The reply is no longer needed, but still takes its place on the line.
    bool is_dropped = false;
  };

  /// A sequence of the stream, or a message of a subject.
  struct Slot {
    bool is_read = false;
    std::optional<FoundMessage> message = {};
  };

  struct ReadBack {
    std::uint64_t from = 0;
    Answer answer = {};
    bool opens_session = false;
    /// The sequence of the first slot.
    std::uint64_t begin = 0;
    /// Reads all messages of a subject one after the other, not just the last one.
    bool walks = false;
    std::vector<Slot> slots = {};
    std::size_t asked = 0;
    /// How many slots have been read without a gap.
    std::size_t read = 0;
    /// The assumed bytes of a reply with a message.
    std::size_t message_bytes = 0;
    Time since = {};
  };

  Steps start(PartitionId partition, ReadBack read_back, Time now);
  void drop(PartitionId partition);
  void forget(std::map<std::uint64_t, Asked>::iterator asked);
  std::optional<Asked> take(std::uint64_t number);

  /// The results of the step, after giving up or finishing what is overdue.
  Steps take_steps(Time now);
  void ask(Asked asked, std::string body, Time now);
  void ask_for_messages(Time now);
  bool has_room_for(std::size_t bytes) const noexcept;
  void measure(std::uint64_t number, std::size_t bytes, Time now);
  std::string body_for(const ReadBack& read_back, std::size_t slot, PartitionId partition) const;
  void give_up_late(Time now);
  void finish_late(Time now);
  void ask_no_more(PartitionId partition, ReadBack& read_back);

  void on_stream(const Asked& asked, std::string_view reply, Time now);
  void on_missing_stream(PartitionId partition, const ApiError& error, Time now);
  static void measure(const StreamInfo& info, Answer& answer);
  void plan(PartitionId partition, const StreamInfo& info);
  void on_message(const Asked& asked, std::string_view reply);
  void on_last_of_subject(PartitionId partition);
  void on_next_of_subject(PartitionId partition);

  /// Finishes with the first `count` slots.
  void finish(PartitionId partition, std::size_t count);
  void fail(PartitionId partition, const Meaning& meaning, std::string why);
  void fail(const Asked& asked, const ApiError& error);
  /// "reading message 7 of the stream 'SHOP'"
  std::string doing(const Asked& asked) const;

  const PublisherOptions& options_;
  const SubjectLayout& layout_;
  const std::string api_;
  std::map<PartitionId, ReadBack> open_;
  /// Partitions with messages still to be requested.
  std::deque<PartitionId> turns_;
  /// Ordered by number, so the oldest request comes first.
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t last_number_ = 0;
  /// Results of the current step.
  Steps steps_;
  // Messages in flight.
  std::size_t messages_asked_ = 0;
  std::size_t bytes_asked_ = 0;
  /// Starts with room for as many small messages as may be in flight, and never shrinks below what
  /// a line of 20 kB/s carries in a second.
  ByteWindow window_{{.first = std::int64_t{168} * 1024, .least = std::int64_t{16} * 1024}};
};

}  // namespace stela::nats
