// A nats-server of our own, and nats.c with as little around it as there can be.
#pragma once

#include "support/nats_server.hpp"

#include <nats/nats.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela::bench {

/// Where all figures of a group publish to.
struct NatsPlace {
  static constexpr const char* stream = "STELA";
  static constexpr const char* subjects = "stela.>";
};

void check_nats(natsStatus status, const char* doing);

struct RawNatsOptions {
  /// How many messages may be without an answer.
  int window = 2'000;
  /// Sends each message at once instead of with the next millisecond's buffer.
  bool send_asap = false;
  /// All into one stream, which numbers them.
  bool one_stream = true;
};

/// A connection that publishes asynchronously, into a stream that was empty before.
/// Threads: one publishes; `acknowledged` from any.
class RawNats {
 public:
  explicit RawNats(const std::string& url, RawNatsOptions options = {});
  ~RawNats();
  RawNats(const RawNats&) = delete;
  RawNats& operator=(const RawNats&) = delete;

  natsConnection* connection() noexcept { return connection_; }
  jsCtx* context() noexcept { return context_; }

  /// An empty stream in place of the one that is there: file storage, no limit.
  void make_stream();
  std::uint64_t messages_in_stream();

  /// Takes the message.
  void publish(natsMsg* message);

  /// How many are stored, one behind the other.
  std::uint64_t acknowledged() const noexcept {
    return acknowledged_.load(std::memory_order_acquire);
  }
  /// Waits until so many are; throws if one was refused.
  void wait_for(std::uint64_t count);

 private:
  static void on_ack(jsCtx*, natsMsg* message, jsPubAck* ack, jsPubAckErr* error, void* self);

  natsConnection* connection_ = nullptr;
  jsCtx* context_ = nullptr;
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<bool> failed_{false};
  const bool one_stream_;
};

/// What of an event becomes headers.
struct RawEvent {
  std::int64_t sequence = 0;
  std::int64_t version = 0;
  std::int64_t published_before = 0;
  std::int64_t recorded_at = 0;
  /// Sixteen bytes.
  std::string_view id = {};
  std::string_view stream = {};
  std::string_view type = {};
  std::string_view correlation = {};
  std::string_view payload = {};
};

/// Makes messages with the headers that Stela's have. What is the same in every message is known
/// beforehand.
/// Threads: one at a time.
class RawEnvelope {
 public:
  RawEnvelope(std::string store_id, bool chained, std::string stream = NatsPlace::stream,
              std::string prefix = "stela");

  /// The caller's own.
  natsMsg* make(const RawEvent& event);

 private:
  void write_time(std::int64_t microseconds);

  std::string store_id_;
  std::string source_;
  std::string stream_;
  std::string prefix_;
  bool chained_;
  std::uint64_t position_ = 0;
  std::int64_t previous_ = 0;
  std::string previous_id_;
  std::string subject_;
  std::string id_;
  std::string value_;
  std::int64_t time_second_ = 0;
  std::string time_;
};

/// CPU seconds that a process has used so far.
double cpu_seconds_of(pid_t process);

}  // namespace stela::bench
