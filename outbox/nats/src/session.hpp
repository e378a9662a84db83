// One connection of the publisher, from its creation to its end.
#pragma once

#include "connection.hpp"
#include "envelope.hpp"
#include "handles.hpp"
#include "read_backs.hpp"
#include "subject_layout.hpp"
#include "unanswered.hpp"

#include <stela/nats/publisher.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// Publishes with its own reply subjects, which carry the number of the request: an answer thus
/// identifies its request, and a late answer meets an ended session. Threads: nats.c's own call the
/// static functions; the publisher's worker opens and ends; the relay's publishes, flushes and
/// begins to read back.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const PublisherOptions& options, const SubjectLayout& layout, std::uint64_t number,
          AnswerSink& sink);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Answers `connected`, or the obstacle.
  void open();
  /// Ends all answers, after waiting for one that is being given.
  void silence() noexcept;
  void end() noexcept;

  void publish(const OutgoingMessage& message);
  void flush();
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from);
  /// Waits for the server as long as for a published message.
  void probe(std::uint64_t request);

 private:
  /// A reference that nats.c keeps until it reports that it is done.
  using Hold = std::shared_ptr<Session>;

  void connect();
  void listen();
  void set_fence(natsMsg* raw, const OutgoingMessage& message);
  void answer(Answer answer);
  bool is_silent() const;

  /// Takes a step of the read-backs and carries out its results.
  template <class Step>
  void advance(natsConnection* connection, Step step);
  void on_api_reply(natsConnection* connection, std::uint64_t number, natsMsg* reply);

  static void on_reply(natsConnection*, natsSubscription*, natsMsg* raw, void* closure);
  static void on_listening_over(void* closure);
  static void on_closed(natsConnection*, void* closure);
  static void on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                       void* closure);
  void on_denied(natsConnection* connection, const std::string& why);

  // Copies, because nats.c may keep the session longer than its publisher lives.
  const PublisherOptions options_;
  const SubjectLayout layout_;
  const std::string api_{api_prefix(options_.api)};
  const std::uint64_t number_;
  mutable std::mutex sink_mutex_;
  /// Null once answers have ended. Guarded by sink_mutex_ even while it is called, because it may
  /// be destroyed once the session has ended.
  AnswerSink* sink_;
  Connection connection_;
  Subscription replies_;
  std::string inbox_;
  Unanswered unanswered_{options_.publish_timeout};
  std::mutex read_backs_mutex_;
  /// Guarded by read_backs_mutex_.
  ReadBacks read_backs_{options_, layout_};
  /// nats.c frees messages on its own thread, and each freed message wakes it if it waits. So
  /// finished messages are passed on in batches. These are replies, used by the thread that
  /// delivers them.
  std::vector<MessageHandle> old_replies_;
  // Used by the relay's thread only.
  std::string reply_to_;
  /// The partition last published to.
  PartitionId partition_{-1};
  std::string stream_;
  EnvelopeWriter envelope_;
  std::vector<MessageHandle> sent_;
  int unflushed_ = 0;
};

}  // namespace stela::nats
