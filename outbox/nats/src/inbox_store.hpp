// The inbox's tables, as one consumer works with them.
#pragma once

#include "database/database.hpp"
#include "delivery.hpp"
#include "durable.hpp"
#include "inbox_held.hpp"
#include "inbox_key.hpp"

#include <stela/eventstore/store.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stela::nats {

/// Everything with a connection belongs into the transaction that is open on it.
/// Threads: one at a time.
class InboxStore {
 public:
  /// Makes the consumer's row if it isn't there.
  InboxStore(Store& store, const std::string& consumer);

  enum class Arrival : std::uint8_t {
    /// It is next in its stream, or nobody can tell.
    next,
    /// It was missed before, and comes after all.
    late,
    /// The first that is met of its stream, which has earlier ones.
    first_of_many,
    duplicate,
    /// The inbox has another event as this version of its stream: the store was restored from a
    /// backup, or is a copy.
    another_history,
    /// It was taken over before, and waits in the inbox.
    held_already,
    /// Something earlier of its stream failed, or waits in the inbox.
    behind_failure,
    /// Something earlier of its stream hasn't come.
    behind_gap,
  };

  /// To be called before a transaction's messages.
  void begin(database::Connection& connection);
  /// `whole`: the consumer gets every message of each stream.
  Arrival look(database::Connection& connection, const Delivery& delivery, bool whole) const;
  /// Whether one of them is the first of its stream that is met, and has earlier ones.
  bool meets_first_of_many(std::span<const Delivery> batch) const;
  /// Notes the event's effect; false if it happened before. What is held behind it is due.
  bool take(database::Connection& connection, const ReceivedEvent& event, Arrival standing,
            bool whole);
  bool is_handled(database::Connection& connection, const ReceivedEvent& event) const;
  /// Whether another event waits under the event's version.
  bool is_held_otherwise(database::Connection& connection, const ReceivedEvent& event) const;
  /// The event needs nothing more: it neither waits nor fails any longer. Another event that is
  /// held under its version still does.
  void settle(database::Connection& connection, const ReceivedEvent& event);
  /// Takes the message over from the broker, or leaves it held: it is due at `due`, or when it is
  /// the first of its stream that is held.
  void hold(database::Connection& connection, const Delivery& delivery, Timestamp due);
  /// The broker has the message no longer: notes that it is missing, and goes on after it. False if
  /// somebody handled it meanwhile, or it came again.
  bool lose(database::Connection& connection, const HeldMessage& message, bool whole);
  /// From now on this process sees that the event waits for what is missing before it.
  void watch(const ReceivedEvent& event);
  /// How often a held message was tried, and its last error.
  std::pair<int, std::string> failure_of(const HeldMessage& message) const;
  /// Notes that a message is missing that nothing is left of.
  void note_loss(const LostMessage& message);

  /// Counts a failure. How many there were.
  int note_failure(database::Connection& connection, const ReceivedEvent& event,
                   const std::string& error);
  /// Notes that this process doesn't know the event's version. Returns when the first one met it:
  /// `now`, if this is the first.
  Timestamp note_unknown(database::Connection& connection, const ReceivedEvent& event,
                         const std::string& error, Timestamp now);
  /// Says what became of a failure that was counted beforehand.
  void explain_failure(database::Connection& connection, const ReceivedEvent& event,
                       const std::string& error);
  /// Takes an attempt off the count, and keeps what it failed with.
  void discount_failure(database::Connection& connection, const ReceivedEvent& event);
  /// Takes back what was counted beforehand: it wasn't the message's fault.
  void take_back_failure(database::Connection& connection, const ReceivedEvent& event);
  /// Keeps the message, and counts it as handled.
  void bury(database::Connection& connection, const Delivery& delivery, Arrival standing,
            int attempts, const std::string& error, bool whole);
  /// Keeps one that counts as handled.
  void insert_letter(database::Connection& connection, const Delivery& delivery, int attempts,
                     const std::string& error);

  struct Letter {
    std::int64_t number = 0;
    std::string broker_stream;
    KeptHeaders::Map headers;
    std::string payload;
    /// Those that have failed.
    int attempts = 0;
    /// By `take_letter`.
    bool is_taken = false;
  };
  /// The next one after `after` that an operator wants to be tried again.
  std::optional<Letter> next_to_retry(std::int64_t after);
  /// Counts the attempt before it is made, as if it had failed with `error`. False if somebody else
  /// took it.
  bool take_letter(std::int64_t letter, const std::string& error);
  /// False if an operator removed it meanwhile.
  static bool remove_letter(database::Connection& connection, std::int64_t letter);
  void explain_letter(std::int64_t letter, const std::string& error);
  /// Takes back what `take_letter` did, and keeps what it failed with.
  void leave_letter(std::int64_t letter, const std::string& error);

  /// Forgets what was handled so long before now and before the last, some at a time. False if
  /// nothing is left.
  bool purge(std::chrono::microseconds retention);

  /// Consumers of this name read the stream at the broker, each message of it.
  void note_stream(const std::string& broker_stream);
  /// Which others they have ever read.
  std::vector<std::string> other_streams(const std::string& broker_stream) const;
  /// Those of `others` that are in `gone` aren't at the broker. One that hasn't been for longer
  /// than `retention`, and of which nothing is held, is forgotten.
  void note_gone(const std::vector<std::string>& others, const std::set<std::string>& gone,
                 std::chrono::microseconds retention);

  /// Unset if no consumer with this filter and start is known to have settled anything.
  std::optional<Settled> settled(const ConsumerOptions& options) const;
  void note_settled(const ConsumerOptions& options, const Settled& settled);

  HeldStore& held() noexcept { return *held_; }
  Timestamp now() const { return store_.database().now(); }

 private:
  InboxKey key_of(const ReceivedEvent& event) const;
  InboxKey key_of(const HeldMessage& message) const;
  /// Whether a message of the stream failed or is held. Most streams have none, however many others
  /// do, and are asked for this alone.
  bool has_trouble(database::Connection& connection, const InboxKey& key) const;
  void note_trouble(const InboxKey& key);
  /// The first message of the event's stream that is held.
  std::optional<StreamVersion> first_held(database::Connection& connection,
                                          const ReceivedEvent& event) const;
  /// Of an event whose version was met before.
  Arrival look_again(database::Connection& connection, const ReceivedEvent& event) const;
  /// The event was missing, and isn't any longer.
  void split_gaps(database::Connection& connection, const ReceivedEvent& event);
  void insert_gap(database::Connection& connection, const InboxKey& before, std::int64_t after,
                  std::optional<std::int64_t> missing);
  /// A gap behind `after` that ends with the lost message.
  void insert_loss(database::Connection& connection, const InboxKey& lost, std::int64_t after);

  Store& store_;
  std::int64_t consumer_ = 0;
  std::optional<HeldStore> held_;
  /// Whether any stream has a message that failed or is held.
  bool has_trouble_ = false;
  /// Whether this one has, as far as it was asked for in this transaction: by source and stream.
  mutable std::map<std::pair<std::string, std::string>, bool> troubles_;
};

}  // namespace stela::nats
