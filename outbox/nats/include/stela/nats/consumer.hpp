// Takes messages from JetStream, and lets the effect of each happen once.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/nats/connection.hpp>
#include <stela/nats/export.hpp>

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

enum class Start : std::uint8_t {
  /// With the first message of the stream.
  first,
  /// With what comes after the consumer was made.
  now,
};

struct ConsumerOptions {
  std::string url = "nats://127.0.0.1:4222";
  JetStreamApi api = {};
  Credentials credentials = {};
  Tls tls = {};
  /// As the publisher's.
  std::chrono::milliseconds connect_timeout{2'000};

  /// Of the durable consumer at the broker and of its part of the inbox: letters, digits, '_', '-'.
  /// Consumers of one name share the work, and the inbox when they read several streams.
  std::string name = {};
  /// The JetStream stream.
  std::string stream = "STELA";
  /// Only messages with these subjects. Then nobody can tell whether some are missing or still on
  /// their way.
  std::string filter_subject = {};
  /// For a consumer that isn't at the broker yet. One that began later isn't taken for
  /// Start::first.
  Start start = Start::first;

  /// How many messages are fetched, and handled in one transaction.
  int batch_size = 100;
  /// How many bytes are asked for at once, at most; as much again may wait while a batch is
  /// handled. On a slow line it is as much as comes within some seconds. One message may be larger.
  std::int64_t prefetch_bytes = 16 * 1024 * 1024;
  /// How many may be with consumers of this name, all together, without an answer. Unset: what the
  /// consumer at the broker has, and 1,000 (or batch_size, if that is more) for a new one.
  std::optional<int> max_ack_pending = {};
  /// The broker hands a message to another when it wasn't answered for so long. Unset: what the
  /// consumer at the broker has, and 30 s for a new one, or half of gap_patience if that is less.
  std::optional<std::chrono::milliseconds> ack_wait = {};
  /// How long one request for messages waits for the first of them.
  std::chrono::milliseconds idle_wait{500};

  /// The first wait after a handler failed, doubled each time up to the maximum.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
  /// How often a message is tried before it becomes a dead letter.
  int max_attempts = 5;
  /// How long a message waits for the one before it in its stream before that counts as missing.
  /// Unset: twice the ack_wait that the consumer has at the broker, since what a dead process had
  /// comes again after that. Must be longer than that ack_wait. It is the time in which processes
  /// saw it wait, by steady clocks. A process that sees that for the first time takes the wall
  /// clock's word for how long nobody looked, and counts 5 s of it at most.
  std::optional<std::chrono::milliseconds> gap_patience = {};
  /// How long the inbox remembers what was handled, counted back from the last message.
  std::chrono::hours retention{168};
};

/// UsageError if a value is out of range or contradicts another.
STELA_NATS_EXPORT void check(const ConsumerOptions& options);

/// What a consumer did since it last said so, and how it stands.
struct ConsumerTick {
  std::int64_t handled = 0;
  /// Of events that have no handler.
  std::int64_t ignored = 0;
  std::int64_t duplicates = 0;
  /// Put aside because something earlier of their stream hasn't been handled yet.
  std::int64_t held = 0;
  /// Put aside because their handler failed.
  std::int64_t failed = 0;
  /// Given up: dead letters.
  std::int64_t dead = 0;
  /// Dead letters that an operator had tried again with success.
  std::int64_t revived = 0;
  std::int64_t gaps = 0;
  /// Put aside, and gone from the broker when it was their turn. Each is noted as a gap.
  std::int64_t lost = 0;
  /// "connected", "connecting", "down: …" or "misconfigured: …": a missing stream, say.
  std::string broker = {};

  /// Adds what was done; the broker stands as `other` says.
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
  /// Whether both did the same, however the broker stands.
  friend bool operator==(const ConsumerTick& a, const ConsumerTick& b) noexcept {
    return a.counts() == b.counts();
  }

 private:
  std::array<std::int64_t, 9> counts() const noexcept {
    return {handled, ignored, duplicates, held, failed, dead, revived, gaps, lost};
  }
};

/// What a consumer calls for the events of one type, in whatever version.
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

/// A durable pull consumer with an inbox: the id of each event and what its handler writes through
/// the transaction commit together, and the broker is told after that. So a message may come any
/// number of times, and a consumer may die anywhere: the effect happens once.
///
/// Without a filter, messages of one stream are handled in order by all consumers of one name and
/// one database; what comes after a message that fails or is missing is held in the inbox until
/// that one is handled, becomes a dead letter, or counts as missing. Other streams don't wait. With
/// a filter nobody can tell what is still on its way: order holds for one consumer as long as it
/// lives. What a handler appends through the transaction carries the event's correlation and names
/// it as its cause. A consumer that was deleted at the broker is made again, and continues where
/// the inbox says that it was. Threads: one at a time; handlers are called on the thread that
/// consumes.
class STELA_NATS_EXPORT Consumer {
 public:
  /// The inbox, and what handlers write, is in the database of `store`, which must outlive the
  /// consumer.
  Consumer(Store& store, const ConsumerOptions& options);
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// `handler(Transaction&, const Recorded<E>&)`: whatever it throws undoes what it wrote, and the
  /// message is tried again. It may be called more often than its effect happens, so what it does
  /// outside the transaction must bear that. UsageError if there is one for an event of that name.
  template <Event E, std::invocable<Transaction&, const Recorded<E>&> F>
  void on(F handler) {
    add(E::event_type.name, std::make_unique<detail::TypedHandler<E, F>>(std::move(handler)));
  }

  /// Handles what is there now; what it did before it threw, the next call returns, too.
  /// BrokerFailed if the broker can't be reached, has no such stream, or refuses to give messages.
  /// UsageError if the consumer or the stream at the broker could lose messages or keep them back:
  /// it names each setting, what it should be, and how to change it.
  ConsumerTick poll();

  /// Consumes until `stop` is requested, then finishes what it has. Trouble with the broker, a
  /// missing stream too, or with a busy or full database is waited out with growing pauses, and
  /// logged when it begins, changes and ends; throws what no waiting mends: UsageError,
  /// StoreFailed, CommitInDoubt.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, whenever it did something and whenever the broker's state
  /// changed.
  void on_tick(std::function<void(const ConsumerTick&)> listener);

 private:
  void add(std::string_view event, std::unique_ptr<Handler> handler);

  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace stela::nats
