// What the database knows of a consumer that reads one JetStream stream.
#pragma once

#include "database/transaction.hpp"
#include "delivery.hpp"
#include "follow/failing.hpp"
#include "follow/lease.hpp"
#include "message_source.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::nats {

/// Another process reads now: what this one was about to commit isn't committed.
struct LeaseLost {};

/// How far the consumer is in the stream, who reads it, and what failed.
struct Standing {
  std::string filter = {};
  /// 0 until a reader has begun.
  std::int64_t stream_made_at = 0;
  std::uint64_t position = 0;
  /// When the broker stored the message there; 0 if that isn't known.
  std::int64_t position_time = 0;
  /// Where the reader began: what came before isn't missing.
  std::uint64_t began_after = 0;
  /// Messages up to here may come for the second time, and in any order if an older consumer has
  /// handled them.
  std::uint64_t known_through = 0;
  /// Where a reader begins that was moved, or had an older consumer before it.
  std::uint64_t beginning = 0;
  std::int64_t epoch = 0;
  /// Empty if there is none.
  std::string owner = {};
  follow::StoredLease lease = {};
  /// The message after the position, if it failed.
  follow::Failing failing = {};
  std::optional<Timestamp> unknown_since = {};
  bool is_paused = false;
  Timestamp consumer_made_at = {};
  /// An older consumer of this name has handled something.
  bool has_older = false;
};

/// How a message stands in its stream of events.
enum class Arrival : std::uint8_t {
  /// It was never met, or missed before.
  next,
  /// It was handled or parked before.
  copy,
  /// Another event was met as this version: the store was restored from a backup, or is a copy.
  another_history,
  /// Something earlier of its stream is parked.
  behind_parked,
};

/// Why a message is parked.
struct Parking {
  /// Empty: it stands behind another.
  std::string error = {};
  int attempts = 0;
  /// Later messages of its stream wait for it.
  bool waits = false;
};

/// This consumer's reader of another JetStream stream.
struct OtherReader {
  std::string stream = {};
  std::string filter = {};
  std::uint64_t position = 0;
  /// The generation of the message that waits there for other readers; 0 if none does.
  std::int64_t waits_at = 0;
  /// As in `highest_of`.
  std::int64_t highest = 0;
};

/// A message that is parked and is to be tried again.
struct ToRetry {
  std::int64_t number = 0;
  std::optional<std::string> source = {};
  std::optional<std::string> stream = {};
  KeptHeaders::Map headers = {};
  std::string payload = {};
  int attempts = 0;
};

/// The rows of one reader. Whatever it writes is written under the lease, in a transaction that
/// holds it from its beginning: LeaseLost if it is lost. Threads: one at a time.
class ReaderStore {
 public:
  /// Makes the rows that aren't there. UsageError if the consumer reads the stream with another
  /// filter.
  ReaderStore(Store& store, const ConsumerOptions& options);

  // The lease.
  const Standing& standing() const noexcept { return standing_; }
  bool is_held() const noexcept { return is_held_; }
  /// Reads how it stands now, and renews the lease if that is due.
  void look();
  /// Nobody reads, or whoever did has ended.
  bool is_free() const;
  /// True if it is ours now.
  bool acquire();
  /// The reader before us ended without giving the lease back: a message may have killed it.
  bool is_unclean() const noexcept { return is_unclean_; }
  void release() noexcept;
  /// Somebody else has it.
  void lose() noexcept { is_held_ = false; }

  // The place in the stream.
  /// Reading begins in the stream with these ends, behind this place.
  void begin(const StreamEnds& ends, const BrokerPlace& behind, std::uint64_t known_through);
  /// It reads the stream with these ends.
  void stand_in(const StreamEnds& ends);
  /// Notes what became of the message after the position.
  void note_failure(const follow::Failing& failing, std::optional<Timestamp> unknown_since = {}) {
    note(failing, unknown_since, 0);
  }
  /// It stands still, without a failure: for other readers before a message of the generation
  /// `waits_at`, if that isn't 0. Empty: it continues. True if nothing was noted before.
  bool note_standstill(std::int64_t waits_at, const std::string& why);

  /// The highest sequence of a store that was met here as published for the first time, with a
  /// fence; 0 if none was.
  std::int64_t highest_of(const std::string& store_id) const;
  /// The other readers of this consumer, and what of the store they have met.
  std::vector<OtherReader> others(const std::string& store_id) const;

  // In a transaction that handles messages, which counts if it is committed.
  /// At its beginning.
  void open(database::Connection& connection);
  Arrival look(database::OpenTransaction& open, const Delivery& delivery);
  /// Its version was handled or parked. True if messages are missing before it, which is noted.
  bool meet(database::Connection& connection, const ReceivedEvent& event);
  /// Its bytes; 0 if it is parked already.
  std::int64_t park(database::Connection& connection, const Delivery& delivery,
                    const Parking& parking);
  /// Notes what was met, and moves the position.
  void advance(database::Connection& connection, const BrokerPlace& to);
  /// The transaction of the last `advance` is committed.
  void confirm();
  /// In a transaction of its own.
  void write(database::Database::Work work);

  // Parked messages.
  std::int64_t count_parked_bytes() const;
  /// The next one after `after` that an operator wants to be tried again.
  std::optional<ToRetry> next_to_retry(std::int64_t after) const;
  /// Counts the attempt before it is made, as if it had failed with `error`. False if an operator
  /// has removed the message.
  bool take(const ToRetry& parked, const std::string& error);
  /// False if an operator removed it meanwhile.
  bool remove(database::Connection& connection, const ToRetry& parked);
  /// It failed again: it stays, and so do those behind it.
  void keep(const ToRetry& parked, const std::string& error);
  /// Takes back what `take` did, and keeps what it failed with.
  void leave(const ToRetry& parked, const std::string& error);

  Timestamp now() const { return store_.database().now(); }

 private:
  /// What was met last of a stream of events.
  struct Met {
    /// 0 if nothing was.
    std::int64_t version = 0;
    std::optional<std::string> event_id = {};
    std::optional<Timestamp> recorded_at = {};
    bool is_parked = false;
    bool is_new = false;
  };

  Timestamp lease_until() const { return now() + options_.lease_ttl; }
  bool renew(database::Connection& connection) const;
  void hold(database::Connection& connection) const;
  void sample(database::Connection& connection, Timestamp at);
  void note(const follow::Failing& failing, std::optional<Timestamp> unknown_since,
            std::int64_t waits_at);
  void place(database::Connection& connection, Standing next);
  bool is_another_history(database::Connection& connection, const Delivery& delivery,
                          const Met& last) const;
  std::int64_t highest_of(database::Connection& connection, const std::string& store_id) const;
  Met find(database::Connection& connection, const ReceivedEvent& event) const;
  Met& met(database::Connection& connection, const ReceivedEvent& event);
  bool is_missed(database::Connection& connection, const ReceivedEvent& event) const;
  void split_gaps(database::Connection& connection, const ReceivedEvent& event);

  Store& store_;
  const ConsumerOptions& options_;
  const std::string worker_;
  std::int64_t consumer_ = 0;
  Standing standing_;
  bool is_held_ = false;
  bool is_unclean_ = false;
  /// Nothing is missing at the front of the stream.
  bool has_beginning_ = false;
  follow::Sign sign_;
  follow::Renewal renewal_;
  std::int64_t sampled_minute_ = 0;
  // Of the transaction that is open.
  bool is_locked_ = false;
  std::map<std::pair<std::string, std::string>, Met> met_;
  /// Of each store: see highest_of.
  std::map<std::string, std::int64_t> highest_;
  Standing placed_;
};

}  // namespace stela::nats
