// Consumes messages from JetStream, so that each takes effect once.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/nats/connection.hpp>
#include <stela/nats/export.hpp>
#include <stela/outbox/states.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace stela::nats {

enum class ConsumerStart : std::uint8_t {
  /// At the first message of the stream.
  first,
  /// After the messages that existed when the consumer was created. So a stream that is made later,
  /// as by a resize, is read from its first message on.
  now,
};

/// What happens to a message after its handler has failed `max_attempts` times. An operator retries
/// or discards parked messages.
enum class OnFailure : std::uint8_t {
  /// It is parked, and so is each later message of its stream of events. Other streams continue.
  park_stream,
  /// It is parked alone, and its stream continues without it.
  park_message,
};

struct ConsumerOptions {
  std::string url = "nats://127.0.0.1:4222";
  JetStreamApi api = {};
  Credentials credentials = {};
  Tls tls = {};
  /// As in PublisherOptions.
  std::chrono::milliseconds connect_timeout{2'000};

  /// The name of the consumer, and of its part of the inbox: letters, digits, '_' and '-'. Among
  /// processes with the same name and database, one reads a JetStream stream and the others stand
  /// by. Consumers of several JetStream streams with one name share the inbox.
  std::string name = {};
  /// The JetStream stream.
  std::string stream = "STELA";
  /// Only messages with these subjects. With a filter, a missing message can't be noticed. A
  /// consumer keeps its filter: another one needs another name.
  std::string filter_subject = {};
  /// For a consumer that is new to the stream.
  ConsumerStart start = ConsumerStart::first;

  /// How many messages are fetched at a time, and handled in one transaction.
  int batch_size = 100;
  /// The most bytes requested at a time, but at least one message. As many again may wait while a
  /// batch is handled. Keep it below what the line carries in a few seconds: servers close a
  /// connection that reads nothing for ten.
  std::int64_t prefetch_bytes = 1024 * 1024;
  /// How long one request for messages waits for the first of them.
  std::chrono::milliseconds idle_wait{500};
  /// A process that doesn't renew its lease for this long loses the stream to a standby. A process
  /// that is seen to have ended loses it at once.
  std::chrono::milliseconds lease_ttl{15'000};

  /// The first wait after a handler failed. It doubles each time up to the maximum. Later messages
  /// wait meanwhile.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
  /// How often a message is tried before it is parked.
  int max_attempts = 5;
  OnFailure on_failure = OnFailure::park_stream;
  /// When the parked messages of this name reach this many bytes, the consumer stops until an
  /// operator retries or discards some. One batch may exceed it.
  std::int64_t parked_bytes_limit = 64 * 1024 * 1024;
  /// An event version that this program doesn't know isn't a failure: the stream is left to a
  /// process that knows it. If none takes over within this time, at most a year, the message is
  /// parked as after the last attempt.
  std::chrono::milliseconds unknown_version_wait{3'600'000};
  /// The publishing program's keys, to read personal fields, which stay sealed without them. They
  /// must outlive the consumer.
  Keyring* keys = nullptr;
};

/// UsageError if a value is out of range or contradicts another.
STELA_NATS_EXPORT void check(const ConsumerOptions& options);

/// What a consumer did since its last report, and its state.
struct ConsumerTick {
  std::int64_t handled = 0;
  /// Messages whose event has no handler.
  std::int64_t ignored = 0;
  /// Copies of messages that were handled or parked before.
  std::int64_t duplicates = 0;
  /// Handler failures after which the message is tried again.
  std::int64_t failed = 0;
  /// Parked, including messages behind others.
  std::int64_t parked = 0;
  /// Parked messages that were handled after an operator retried them.
  std::int64_t revived = 0;
  std::int64_t gaps = 0;
  /// Misconfigured if a stream is missing, for example.
  BrokerStatus broker = {};
  /// The process that reads the stream; empty if it is this one, or none.
  std::string reader = {};

  /// Adds the counts; the state is that of `other`.
  ConsumerTick& operator+=(const ConsumerTick& other) {
    handled += other.handled;
    ignored += other.ignored;
    duplicates += other.duplicates;
    failed += other.failed;
    parked += other.parked;
    revived += other.revived;
    gaps += other.gaps;
    broker = other.broker;
    reader = other.reader;
    return *this;
  }
  /// Compares the counts, but not the state.
  friend bool operator==(const ConsumerTick& a, const ConsumerTick& b) noexcept {
    return a.counts() == b.counts();
  }

 private:
  std::array<std::int64_t, 7> counts() const noexcept {
    return {handled, ignored, duplicates, failed, parked, revived, gaps};
  }
};

/// Handles the events of one type, in all of its versions.
class STELA_NATS_EXPORT Handler {
 public:
  virtual ~Handler() = default;
  virtual bool answers_to(std::string_view event) const noexcept = 0;
  virtual void handle(Transaction& transaction, const StoredEvent& event,
                      const Reading& reading) = 0;
};

namespace detail {

template <class E, class F>
class TypedHandler final : public Handler {
 public:
  explicit TypedHandler(F handler) : handler_{std::move(handler)} {}
  bool answers_to(std::string_view event) const noexcept override {
    return stela::detail::answers_to<E>(event);
  }
  void handle(Transaction& transaction, const StoredEvent& event, const Reading& reading) override {
    EventDecoder<EventSet<E>> decoder{reading};
    decoder.decode(event, [&](const E& decoded) {
      handler_(transaction, Recorded<E>{decoded, event});
    });
  }

 private:
  F handler_;
};

}  // namespace detail

/// Follows a JetStream stream that a relay publishes to. A handler runs in the transaction that
/// moves the consumer's position, so each message takes effect once, in the order of the stream,
/// however often it is delivered and wherever a process dies.
///
/// A message whose handler fails is tried again in place, and then parked: see OnFailure. The last
/// version seen in each stream of events distinguishes messages that an operator sent again from
/// messages that were never handled.
///
/// Events that a handler appends through the transaction carry the event's correlation and name it
/// as their cause.
///
/// Threads: one at a time; handlers are called on the thread that consumes.
class STELA_NATS_EXPORT Consumer {
 public:
  /// The inbox and what handlers write are in the database of `store`, which must outlive the
  /// consumer.
  Consumer(Store& store, const ConsumerOptions& options);
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// `handler(Transaction&, const Recorded<E>&)`. An exception undoes what the handler wrote, and
  /// the message is tried again. The handler may be called more often than its effect happens, so
  /// effects outside the transaction must tolerate repetition. UsageError if there is already a
  /// handler for an event with that name.
  template <Event E, std::invocable<Transaction&, const Recorded<E>&> F>
  void on(F handler) {
    add(E::event_type.name, std::make_unique<detail::TypedHandler<E, F>>(std::move(handler)));
  }

  /// Handles the messages that are available now, then lets others read. A message that fails is
  /// tried once; a later call tries it again after its back-off. If it throws, the next call also
  /// reports what this one had done. BrokerFailed if the broker can't be reached, has no such
  /// stream, or refuses to deliver messages. UsageError if the stream at the broker drops messages
  /// once they are read, or the consumer has another filter.
  ConsumerTick run_once();

  /// Consumes until `stop` is requested, then finishes the transaction that it is in. While another
  /// process reads the stream, it stands by. It waits with growing pauses while the broker has
  /// problems (a missing stream too) or the database is busy or full, and logs when a problem
  /// begins, changes and ends. Throws errors that waiting can't solve: UsageError, StoreFailed,
  /// CommitInDoubt.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, whenever it did something or the broker's state changed.
  void on_tick(std::function<void(const ConsumerTick&)> listener);

 private:
  void add(std::string_view event, std::unique_ptr<Handler> handler);

  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace stela::nats
