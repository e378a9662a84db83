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
  /// After the messages that existed when the consumer was created.
  now,
};

struct ConsumerOptions {
  std::string url = "nats://127.0.0.1:4222";
  JetStreamApi api = {};
  Credentials credentials = {};
  Tls tls = {};
  /// As in PublisherOptions.
  std::chrono::milliseconds connect_timeout{2'000};

  /// The name of the durable consumer at the broker, and of its part of the inbox: letters, digits,
  /// '_' and '-'. Consumers with the same name share the work. They share the inbox too if they
  /// read several streams.
  std::string name = {};
  /// The JetStream stream.
  std::string stream = "STELA";
  /// Only messages with these subjects. With a filter, a missing message can't be told from one
  /// that is still on its way.
  std::string filter_subject = {};
  /// For a consumer that doesn't exist at the broker yet. An existing one that began later isn't
  /// accepted for ConsumerStart::first.
  ConsumerStart start = ConsumerStart::first;

  /// How many messages are fetched at a time, and handled in one transaction.
  int batch_size = 100;
  /// The highest number of bytes requested at a time. As much again may wait while a batch is
  /// handled. On a slow line it requests what can arrive within some seconds. One message may be
  /// larger.
  std::int64_t prefetch_bytes = 16 * 1024 * 1024;
  /// The highest number of unacknowledged messages of all consumers with this name. Unset: what the
  /// consumer at the broker has; for a new one 1,000, or batch_size if that is more.
  std::optional<int> max_ack_pending = {};
  /// The broker redelivers a message that hasn't been acknowledged for this long. Unset: what the
  /// consumer at the broker has; for a new one 30 s, or half of gap_patience if that is less.
  std::optional<std::chrono::milliseconds> ack_wait = {};
  /// How long one request for messages waits for the first of them.
  std::chrono::milliseconds idle_wait{500};

  /// The first wait after a handler failed. It doubles each time up to the maximum.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
  /// How often a message is tried before it becomes a dead letter.
  int max_attempts = 5;
  /// A message with an event of a version that this program doesn't know isn't a failure: it is
  /// held, without an attempt, until a process that knows it takes it up. So long after the first
  /// process met it, it becomes a dead letter. At most a year.
  std::chrono::milliseconds unknown_version_wait{3'600'000};
  /// How long a message waits for its predecessor in its stream before that one counts as missing.
  /// Must be longer than the consumer's ack_wait at the broker. Unset: twice that ack_wait, because
  /// messages of a dead process come again after it. Only time in which a process saw the message
  /// wait counts, by steady clocks. A process that sees it for the first time adds the time since
  /// the last process looked, by the wall clock, but at most 5 s.
  std::optional<std::chrono::milliseconds> gap_patience = {};
  /// How long the inbox remembers handled messages, counted back from the last message.
  std::chrono::hours retention{168};
};

/// UsageError if a value is out of range or contradicts another.
STELA_NATS_EXPORT void check(const ConsumerOptions& options);

/// What a consumer did since its last report, and its state.
struct ConsumerTick {
  std::int64_t handled = 0;
  /// Messages whose event has no handler.
  std::int64_t ignored = 0;
  std::int64_t duplicates = 0;
  /// Held because an earlier message of their stream hasn't been handled yet.
  std::int64_t held = 0;
  /// Held because their handler failed.
  std::int64_t failed = 0;
  /// Given up as dead letters.
  std::int64_t dead = 0;
  /// Dead letters that were handled after an operator retried them.
  std::int64_t revived = 0;
  std::int64_t gaps = 0;
  /// Held, and missing at the broker when their turn came. Each is recorded as a gap.
  std::int64_t lost = 0;
  /// Misconfigured if a stream is missing, for example.
  BrokerStatus broker = {};

  /// Adds the counts; the state of the broker is that of `other`.
  ConsumerTick& operator+=(const ConsumerTick& other) {
    handled += other.handled;
    ignored += other.ignored;
    duplicates += other.duplicates;
    held += other.held;
    failed += other.failed;
    dead += other.dead;
    revived += other.revived;
    gaps += other.gaps;
    lost += other.lost;
    broker = other.broker;
    return *this;
  }
  /// Compares the counts, but not the state of the broker.
  friend bool operator==(const ConsumerTick& a, const ConsumerTick& b) noexcept {
    return a.counts() == b.counts();
  }

 private:
  std::array<std::int64_t, 9> counts() const noexcept {
    return {handled, ignored, duplicates, held, failed, dead, revived, gaps, lost};
  }
};

/// Handles the events of one type, in all of its versions.
class STELA_NATS_EXPORT Handler {
 public:
  virtual ~Handler() = default;
  virtual bool answers_to(std::string_view event) const noexcept = 0;
  virtual void handle(Transaction& transaction, const StoredEvent& event, Codec codec) = 0;
};

namespace detail {

template <class E, class F>
class TypedHandler final : public Handler {
 public:
  explicit TypedHandler(F handler) : handler_{std::move(handler)} {}
  bool answers_to(std::string_view event) const noexcept override {
    return stela::detail::answers_to<E>(event);
  }
  void handle(Transaction& transaction, const StoredEvent& event, Codec codec) override {
    EventDecoder<EventSet<E>> decoder{codec};
    decoder.decode(event, [&](const E& decoded) {
      handler_(transaction, Recorded<E>{decoded, event});
    });
  }

 private:
  F handler_;
};

}  // namespace detail

/// A durable pull consumer with an inbox. The id of each event commits together with what its
/// handler writes through the transaction, and the broker gets the acknowledgement after that. So a
/// message may come any number of times, and a consumer may die at any point: the effect happens
/// once.
///
/// Without a filter, all consumers with one name and one database handle the messages of a stream
/// in order. If a message fails or is missing, later ones of its stream are held in the inbox until
/// it is handled, becomes a dead letter, or counts as missing. Other streams continue. With a
/// filter a missing message can't be detected: order holds for one consumer while it lives.
///
/// Events that a handler appends through the transaction carry the event's correlation and name it
/// as their cause. A consumer that was deleted at the broker is created again, and continues from
/// the inbox's position.
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

  /// Handles the messages that are available now. If it throws, the next call also returns what
  /// this one had done. BrokerFailed if the broker can't be reached, has no such stream, or refuses
  /// to deliver messages. UsageError if the settings of the consumer or the stream at the broker
  /// could lose or hold back messages: it names each setting, its right value, and how to change
  /// it.
  ConsumerTick poll();

  /// Consumes until `stop` is requested, then finishes the messages that it has. It waits with
  /// growing pauses while the broker has problems (a missing stream too) or the database is busy or
  /// full, and logs when a problem begins, changes and ends. Throws errors that waiting can't
  /// solve: UsageError, StoreFailed, CommitInDoubt.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, whenever it did something or the broker's state changed.
  void on_tick(std::function<void(const ConsumerTick&)> listener);

 private:
  void add(std::string_view event, std::unique_ptr<Handler> handler);

  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace stela::nats
