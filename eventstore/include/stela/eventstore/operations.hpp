// Operations on an event store in use: look up, verify, purge.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela {

struct StreamEntry {
  StreamId stream;
  StreamVersion version;
  /// Its last event.
  GlobalSequence last;
  Timestamp changed_at;
};

/// Selects streams. They are listed in the order of their names.
struct StreamListing {
  /// Empty: all.
  std::string category = {};
  /// Only streams after this name.
  std::string after = {};
  std::int64_t limit = no_limit;
};

struct SnapshotEntry {
  StreamId stream;
  StreamVersion version;
  GlobalSequence sequence;
  int state_version = 1;
  Timestamp taken_at;
  std::int64_t bytes = 0;
};

/// Totals of the events of one kind.
struct KindCount {
  std::string category;
  std::string type;
  int version = 1;
  bool publishes = false;
  std::int64_t events = 0;
  std::int64_t payload_bytes = 0;
  GlobalSequence first;
  GlobalSequence last;
};

struct CountOptions {
  /// The first event that is counted.
  GlobalSequence from = GlobalSequence{1};
  /// Also lists kinds without a counted event.
  bool lists_all = false;
  /// Counts events. Called between steps. An exception from it ends the count.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct RequiredParticipant {
  std::string name;
  std::string detail;
  Timestamp registered_at;
};

/// The most events outside the index of links that one look-up reads.
inline constexpr std::int64_t most_unindexed = 1'000'000;

/// Selects the events of a correlation, or the direct effects of an event.
struct LinkQuery {
  /// Selects by correlation, including the event that began it. Empty: selects effects.
  std::string correlation = {};
  /// Events that name this one as their cause.
  EventId cause = {};
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  /// By sequence, the oldest or the newest first.
  Direction direction = Direction::forward;
  std::int64_t limit = 100;
};

struct LinkedEvents {
  std::vector<GlobalSequence> sequences = {};
  /// How many events were skipped, because they are neither indexed nor among the `most_unindexed`
  /// that were read. After `index_links` it is 0.
  std::int64_t skipped = 0;
};

/// An event caused by another one, directly or through events in between.
struct Effect {
  GlobalSequence sequence;
  EventId id;
  EventId cause;
};

struct Effects {
  /// Ordered by sequence.
  std::vector<Effect> effects = {};
  /// There are more effects than the limit.
  bool has_more = false;
  /// As in LinkedEvents.
  std::int64_t skipped = 0;
};

struct IndexLinksOptions {
  /// Removes the index first, and builds it again from the first event.
  bool again = false;
  /// Called between steps. An exception from it ends the indexing.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct IndexedLinks {
  /// How many events were indexed by this call.
  std::int64_t events = 0;
  /// All events up to this one are indexed.
  GlobalSequence through = {};
  /// False if it was stopped. Call it again to continue.
  bool finished = true;
};

struct PurgeAppendIdsOptions {
  /// Counts the ids and removes none.
  bool dry_run = false;
  /// Counts the ids that were examined. Called between batches.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct PurgedAppendIds {
  /// How many ids were removed, or would be with `dry_run`.
  std::int64_t ids = 0;
  /// False if the purge was stopped.
  bool finished = true;
};

/// Inspects and maintains a store. (`export_events`, `import_events`, `salvage_events` and
/// `sqlite::backup` copy a store to another place.) Threads: any number at once, alongside writers.
class STELA_EVENTSTORE_EXPORT StoreOperations {
 public:
  /// The store must outlive it; its handle may be moved.
  explicit StoreOperations(Store& store) : store_{store.anchor()} {}

  // --- looking up

  std::vector<StreamEntry> list_streams(const StreamListing& which = {});
  std::vector<SnapshotEntry> list_snapshots(const StreamListing& which = {});
  /// Counts the events from a given one, in steps with short transactions. Empty if it was stopped.
  std::vector<KindCount> count_events(const CountOptions& options = {});
  /// Looks around the time of the id first, and reads about `most` events at most. Empty if none of
  /// these has this id.
  std::optional<GlobalSequence> find_event(const EventId& id, std::int64_t most = no_limit);
  /// The first event recorded at this time or later, or the position after the last one. Found by
  /// binary search: where clocks were set back or differ, other such events may be near it.
  GlobalSequence find_time(Timestamp time);
  /// The events after `after` that name `cause` as their cause; at most `limit`.
  std::vector<GlobalSequence> effects_of(const EventId& cause, GlobalSequence after,
                                         std::int64_t limit);
  /// Events of a correlation, or effects of an event, from the index of links.
  LinkedEvents linked_events(const LinkQuery& query);
  /// All direct and indirect effects of the event with this id and sequence; at most `limit`, the
  /// nearest first.
  Effects all_effects_of(const EventId& cause, GlobalSequence sequence, std::int64_t limit);
  /// The participants that every append requires.
  std::vector<RequiredParticipant> required_participants();

  /// Checks everything in the database, reading it from disk, and reports each problem. A damaged
  /// file is a reported problem, not an error. Appends continue meanwhile: it checks the events
  /// that existed when it began. Memory use stays constant. Only SQLite's own check holds a read
  /// transaction for its whole duration, because it checks the file at one moment. StoreBusy if
  /// SQLite's lock isn't free; StoreFailed if the file was replaced since the store was opened.
  VerifyResult verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options = {});

  // --- causes and effects

  /// Adds the events since the last call to the index of links, in steps with short transactions.
  /// Appends continue meanwhile, and don't maintain the index. Any number of processes may call it
  /// at once. StoreBusy, StoreFull and StoreFailed, as their names say; what was indexed stays.
  IndexedLinks index_links(const IndexLinksOptions& options = {});
  /// How many events `index_links` would add. Above `most_unindexed`, look-ups skip the oldest.
  std::int64_t unindexed_events();

  // --- append ids

  /// Removes the append ids that were used before `before`. Ids are kept for ever unless they are
  /// purged. An append that repeats a purged id appends its events again, so purge only ids that no
  /// caller can retry. Removes a batch at a time, each in a short transaction. StoreBusy, StoreFull
  /// and StoreFailed, as their names say; batches removed before the error stay removed.
  PurgedAppendIds purge_append_ids(Timestamp before, const PurgeAppendIdsOptions& options = {});

 private:
  Store& store_;
};

}  // namespace stela
