// The stored state of a consumer that reads one JetStream stream.
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

/// Another process reads now: this one's pending commit is abandoned.
struct LeaseLost {};

/// How far the consumer is in the stream, who reads it, and what failed.
struct Standing {
  std::string filter = {};
  /// 0 until a reader has begun.
  std::int64_t stream_made_at = 0;
  std::uint64_t position = 0;
  /// When the broker stored the message there; 0 if unknown.
  std::int64_t position_time = 0;
  /// Where the reader began: earlier messages aren't missing.
  std::uint64_t began_after = 0;
  /// Messages up to here may come for the second time.
  std::uint64_t known_through = 0;
  std::int64_t epoch = 0;
  /// Empty if there is no owner.
  std::string owner = {};
  follow::StoredLease lease = {};
  /// The message after the position, if it failed.
  follow::Failing failing = {};
  std::optional<Timestamp> unknown_since = {};
  bool is_paused = false;
  Timestamp consumer_made_at = {};
};

/// How an arriving message relates to its stream of events.
enum class Arrival : std::uint8_t {
  /// It is new, or was missing before.
  next,
  /// It was handled or parked before.
  copy,
  /// Its version was seen with another event: the store was restored from a backup, or is a copy.
  another_history,
  /// An earlier message of its stream is parked.
  behind_parked,
};

/// Why a message is parked.
struct Parking {
  /// Empty: it is parked behind another message.
  std::string error = {};
  int attempts = 0;
  /// Later messages of its stream are parked behind it.
  bool waits = false;
};

/// This consumer's reader of another JetStream stream.
struct OtherReader {
  std::string stream = {};
  std::string filter = {};
  std::uint64_t position = 0;
  /// The generation whose first message waits there for other readers; 0 if none does.
  std::int64_t waits_at = 0;
  /// See `highest_of`.
  std::int64_t highest = 0;
};

/// A parked message to be tried again.
struct ToRetry {
  std::int64_t number = 0;
  std::optional<std::string> source = {};
  std::optional<std::string> stream = {};
  KeptHeaders::Map headers = {};
  std::string payload = {};
  int attempts = 0;
};

/// The rows of one reader. It writes only in transactions that hold the lease from their beginning;
/// LeaseLost if the lease is lost. Threads: one at a time.
class ReaderStore {
 public:
  /// Creates missing rows. UsageError if the consumer reads the stream with another filter.
  ReaderStore(Store& store, const ConsumerOptions& options);

  // The lease.
  const Standing& standing() const noexcept { return standing_; }
  bool is_held() const noexcept { return is_held_; }
  /// Reads the present standing, and renews the lease if that is due.
  void look();
  /// There is no reader, or the last one has ended.
  bool is_free() const;
  /// True if the lease is ours now.
  bool acquire();
  /// The previous reader ended without releasing the lease: a message may have killed it.
  bool is_unclean() const noexcept { return is_unclean_; }
  void release() noexcept;
  /// Another process has the lease.
  void lose() noexcept { is_held_ = false; }

  // The place in the stream.
  /// Begins to read the stream with these ends after this place.
  void begin(const StreamEnds& ends, const BrokerPlace& behind, std::uint64_t known_through);
  /// Records that it reads the stream with these ends.
  void stand_in(const StreamEnds& ends);
  /// Records the failure of the message after the position, or its end.
  void note_failure(const follow::Failing& failing, std::optional<Timestamp> unknown_since = {}) {
    note(failing, unknown_since, 0);
  }
  /// Records a halt that isn't a failure: for other readers, before a message of the generation
  /// `waits_at`, unless that is 0. Empty `why`: it continues. True if no halt was recorded before.
  bool note_standstill(std::int64_t waits_at, const std::string& why);

  /// The highest sequence of a store that arrived here as a first publication with a fence; 0 if
  /// none did.
  std::int64_t highest_of(const std::string& store_id) const;
  /// The other readers of this consumer, with their `highest_of` the store.
  std::vector<OtherReader> others(const std::string& store_id) const;

  // Within a transaction that handles messages; `confirm` follows its commit.
  /// Called at its beginning.
  void open(database::Connection& connection);
  Arrival look(database::OpenTransaction& open, const Delivery& delivery);
  /// Records that the version was handled or parked. True if it recorded a gap before it.
  bool meet(database::Connection& connection, const ReceivedEvent& event);
  /// The bytes of the parked message; 0 if it was parked already.
  std::int64_t park(database::Connection& connection, const Delivery& delivery,
                    const Parking& parking);
  /// Writes what was met, and moves the position.
  void advance(database::Connection& connection, const BrokerPlace& to);
  /// Called once the transaction of the last `advance` is committed.
  void confirm();
  /// Runs `work` in a transaction of its own.
  void write(database::Database::Work work);

  // Parked messages.
  std::int64_t count_parked_bytes() const;
  /// The next one after `after` that an operator wants retried.
  std::optional<ToRetry> next_to_retry(std::int64_t after) const;
  /// Counts an attempt in advance, as if it had failed with `error`. False if an operator has
  /// removed the message.
  bool take(const ToRetry& parked, const std::string& error);
  /// False if an operator has removed it meanwhile.
  bool remove(database::Connection& connection, const ToRetry& parked);
  /// It failed again: it stays parked, and so do those behind it.
  void keep(const ToRetry& parked, const std::string& error);
  /// Undoes `take`, but keeps the error.
  void leave(const ToRetry& parked, const std::string& error);

  Timestamp now() const { return store_.database().now(); }

 private:
  /// The last event that was met of a stream.
  struct Met {
    /// 0 if there was none.
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
  /// The front of the stream is complete.
  bool has_beginning_ = false;
  follow::Sign sign_;
  follow::Renewal renewal_;
  std::int64_t sampled_minute_ = 0;
  // State of the open transaction.
  bool is_locked_ = false;
  std::map<std::pair<std::string, std::string>, Met> met_;
  /// By store: see highest_of.
  std::map<std::string, std::int64_t> highest_;
  Standing placed_;
};

}  // namespace stela::nats
