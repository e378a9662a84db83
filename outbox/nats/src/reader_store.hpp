// What the database knows of a consumer that reads one JetStream stream.
#pragma once

#include "database/database.hpp"
#include "delivery.hpp"
#include "follow/failing.hpp"
#include "follow/lease.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  /// The first message that an older consumer had put off.
  std::optional<std::uint64_t> held_from = {};
  std::int64_t epoch = 0;
  /// Empty if there is none.
  std::string owner = {};
  follow::StoredLease lease = {};
  /// The message behind the position, if it failed.
  follow::Failing failing = {};
  std::optional<Timestamp> unknown_since = {};
  bool is_paused = false;
  Timestamp consumer_made_at = {};
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
  std::uint64_t broker_sequence = 0;
  std::optional<std::string> source = {};
  std::optional<std::string> stream = {};
  KeptHeaders::Map headers = {};
  std::string payload = {};
  int attempts = 0;
};

/// Everything with a connection belongs into the transaction that is open on it, and counts if that
/// is committed. Threads: one at a time.
class ReaderStore {
 public:
  /// Makes the rows that aren't there. UsageError if the consumer reads the stream with another
  /// filter.
  ReaderStore(Store& store, const ConsumerOptions& options);

  // The lease.
  const Standing& standing() const noexcept { return standing_; }
  bool is_held() const noexcept { return is_held_; }
  const std::string& worker() const noexcept { return worker_; }
  /// Reads how it stands now, and renews the lease if that is due.
  void look();
  /// Nobody reads, or whoever did has ended.
  bool is_free() const;
  /// True if it is ours now.
  bool acquire();
  /// A reader has a lease that is over.
  bool is_overdue() const;
  /// The reader before us ended without giving the lease back: a message may have killed it.
  bool is_unclean() const noexcept { return is_unclean_; }
  void release() noexcept;
  /// Somebody else has it.
  void lose() noexcept { is_held_ = false; }

  // Under the lease: LeaseLost if it is lost.
  /// An older consumer of this name has handled something.
  bool has_older() const;
  /// Reading begins anew, behind `position`.
  void begin(std::int64_t stream_made_at, std::uint64_t position, std::uint64_t known_through);
  /// A server may tell another time for a stream that was edited.
  void know_stream(std::int64_t made_at) noexcept { standing_.stream_made_at = made_at; }
  /// Notes what became of the message behind the position.
  void note_failure(const follow::Failing& failing, std::optional<Timestamp> unknown_since);

  /// It stands still, without a failure: for other readers before a message of the generation
  /// `waits_at`, if that isn't 0. Empty: it goes on. True if nothing was noted before.
  bool note_standstill(std::int64_t waits_at, const std::string& why);

  /// The highest sequence of a store that was met here as published for the first time, with a
  /// fence; 0 if none was.
  std::int64_t highest_of(const std::string& store_id) const;
  /// The other readers of this consumer, and what of the store they have met.
  std::vector<OtherReader> others(const std::string& store_id) const;

  // In a transaction that handles messages.
  /// Keeps others from the lease until it ends. LeaseLost.
  void hold(database::Connection& connection) const;
  /// True if messages are parked: then operators must be kept out before it is begun once more.
  bool begin(database::Connection& connection);
  Arrival look(database::Connection& connection, const Delivery& delivery);
  /// Its version was handled or parked. True if messages are missing before it, which is noted:
  /// where `is_whole`, as every message of each stream of events comes, and for the first one that
  /// is met of its stream if nothing is missing at the front of the JetStream stream,
  /// `has_beginning`.
  bool meet(database::Connection& connection, const ReceivedEvent& event, bool is_whole,
            bool has_beginning);
  /// `waits`: later messages of its stream wait for it. Its bytes; 0 if it is parked already.
  std::int64_t park(database::Connection& connection, const Delivery& delivery, bool waits,
                    int attempts, const std::string& error);
  /// Notes what was met, and moves the position. LeaseLost.
  void advance(database::Connection& connection, const BrokerPlace& to);
  /// The transaction of the last `advance` is committed.
  void confirm();

  // Parked messages.
  std::int64_t count_parked_bytes() const;
  /// The next one after `after` that an operator wants to be tried again.
  std::optional<ToRetry> next_to_retry(std::int64_t after) const;
  /// Counts the attempt before it is made, as if it had failed with `error`. False if an operator
  /// has removed the message.
  bool take(const ToRetry& parked, const std::string& error);
  /// LeaseLost; false if an operator removed it meanwhile.
  bool remove(database::Connection& connection, const ToRetry& parked);
  /// It failed again: it stays, and so do those behind it.
  void keep(const ToRetry& parked, const std::string& error);
  /// Takes back what `take` did, and keeps what it failed with.
  void leave(const ToRetry& parked, const std::string& error);

  Timestamp now() const { return store_.database().now(); }

 private:
  /// What was met last of a stream of events.
  struct Met {
    std::int64_t version = 0;
    std::optional<std::string> event_id = {};
    std::optional<Timestamp> recorded_at = {};
    bool is_new = false;
  };
  using StreamKey = std::pair<std::string, std::string>;

  bool renew(database::Connection& connection) const;
  void sample(database::Connection& connection, Timestamp at);
  Timestamp lease_until() const { return now() + options_.lease_ttl; }
  void write(database::Database::Work work);
  bool is_another_history(const Delivery& delivery, const Met& last) const;
  void note_source(const ReceivedEvent& event);
  std::optional<Met>& met(database::Connection& connection, const ReceivedEvent& event);
  bool is_parked(database::Connection& connection, const ReceivedEvent& event);
  bool is_missed(database::Connection& connection, const ReceivedEvent& event) const;
  void split_gaps(database::Connection& connection, const ReceivedEvent& event);

  Store& store_;
  const ConsumerOptions& options_;
  const std::string worker_;
  std::int64_t consumer_ = 0;
  Standing standing_;
  bool is_held_ = false;
  bool is_unclean_ = false;
  follow::Sign sign_;
  follow::Renewal renewal_;
  std::int64_t sampled_minute_ = 0;
  /// Of each store: see highest_of.
  std::map<std::string, std::int64_t> sources_;
  // Of the transaction that is open.
  bool has_parked_ = false;
  std::map<StreamKey, std::optional<Met>> met_;
  std::map<StreamKey, bool> parked_;
  std::map<std::string, std::int64_t> new_sources_;
  std::uint64_t advanced_to_ = 0;
  std::int64_t advanced_to_time_ = 0;
};

}  // namespace stela::nats
