// Finds out what stands at the end of partitions, by requests to the JetStream API.
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

/// A request to the JetStream API. Its reply is told by `number`.
struct ApiRequest {
  std::uint64_t number = 0;
  std::string subject = {};
  std::string body = {};
};

/// What a step leads to.
struct Steps {
  std::vector<ApiRequest> requests = {};
  std::vector<Answer> answers = {};
};

/// Reads any number of partitions back at the same time, each for itself: the stream as it is now,
/// made if it is missing and may be, then its messages, many at a time. What is in flight of all
/// partitions is bounded, in messages and in bytes, and they take turns; over a slow line it is so
/// little that replies come in time. A read-back asks for messages in the first quarter of
/// publish_timeout, and finishes with what has come by the half at the latest, if that is enough to
/// continue from.
/// A state machine: it sends nothing and waits for nothing. A request without a reply is given up
/// after publish_timeout, counted from its own sending, as soon as anything else happens.
/// Threads: one at a time.
class ReadBacks {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Both must outlive it.
  ReadBacks(const PublisherOptions& options, const SubjectLayout& layout)
      : options_{options}, layout_{layout}, api_{api_prefix(options.api)} {}

  /// Reads a partition back; what was being read of it is dropped.
  Steps begin(std::uint64_t request, PartitionId partition, std::uint64_t from, Time now);
  /// Makes the one stream of mode `none` if it is missing, and answers `connected` then.
  Steps open(Time now);

  Steps on_reply(std::uint64_t number, std::string_view reply, Time now);
  /// Nobody takes requests on the subject.
  Steps on_no_responders(std::uint64_t number, Time now);
  /// The server doesn't let us send to `subject`: no reply will come.
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
    /// Nobody waits for the reply, which takes its place on the line nevertheless.
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
    /// Of a subject, more than its last message: goes from one to the next.
    bool walks = false;
    std::vector<Slot> slots = {};
    std::size_t asked = 0;
    /// So many slots have been read without a gap.
    std::size_t read = 0;
    /// What a reply with a message is taken to have, in bytes.
    std::size_t message_bytes = 0;
    Time since = {};
  };

  Steps start(PartitionId partition, ReadBack read_back, Time now);
  void drop(PartitionId partition);
  void forget(std::map<std::uint64_t, Asked>::iterator asked);
  std::optional<Asked> take(std::uint64_t number);

  /// What the step led to, after what is due by time.
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

  /// With the first `count` slots.
  void finish(PartitionId partition, std::size_t count);
  void fail(PartitionId partition, const Meaning& meaning, std::string why);
  void fail(const Asked& asked, const ApiError& error);
  /// "reading message 7 of the stream 'SHOP'"
  std::string doing(const Asked& asked) const;

  const PublisherOptions& options_;
  const SubjectLayout& layout_;
  const std::string api_;
  std::map<PartitionId, ReadBack> open_;
  /// Partitions of which messages remain to be asked for.
  std::deque<PartitionId> turns_;
  /// By their numbers, and so the oldest first.
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t last_number_ = 0;
  /// Of the step that is being taken.
  Steps steps_;
  // Of messages in flight.
  std::size_t messages_asked_ = 0;
  std::size_t bytes_asked_ = 0;
  /// Has room at first for as many small messages as may be in flight, and at least for as much as
  /// a line of 20 kB/s brings in a second.
  ByteWindow window_{{.first = std::int64_t{168} * 1024, .least = std::int64_t{16} * 1024}};
};

}  // namespace stela::nats
