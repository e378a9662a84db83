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
  /// Kinds of which no event is counted as well.
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

/// So many events that aren't in the index of links are read by one look-up.
inline constexpr std::int64_t most_unindexed = 1'000'000;

/// Selects the events of a correlation, or the direct effects of an event.
struct LinkQuery {
  /// The event that began the correlation is one of its events. Empty: look for effects.
  std::string correlation = {};
  /// Events that name this one as their cause.
  EventId cause = {};
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  /// In the order of their sequence, the oldest or the newest first.
  Direction direction = Direction::forward;
  std::int64_t limit = 100;
};

struct LinkedEvents {
  std::vector<GlobalSequence> sequences = {};
  /// How many events weren't looked at, because they are neither indexed nor among the
  /// `most_unindexed` that were read. `index_links` makes it 0.
  std::int64_t skipped = 0;
};

/// An event that another led to, directly or by events between them.
struct Effect {
  GlobalSequence sequence;
  EventId id;
  EventId cause;
};

struct Effects {
  /// By their sequence.
  std::vector<Effect> effects = {};
  /// There are more than the limit.
  bool has_more = false;
  /// As in LinkedEvents.
  std::int64_t skipped = 0;
};

struct IndexLinksOptions {
  /// Removes the index first, and builds it from the first event on.
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
/// `sqlite::backup` copy a store to another place.) Threads: any number at once, beside writers.
class STELA_EVENTSTORE_EXPORT StoreOperations {
 public:
  /// The store must outlive it; its handle may be moved.
  explicit StoreOperations(Store& store) : store_{store.anchor()} {}

  // --- looking

  std::vector<StreamEntry> list_streams(const StreamListing& which = {});
  std::vector<SnapshotEntry> list_snapshots(const StreamListing& which = {});
  /// Counts the events from one on, in steps with short transactions. Empty if it was stopped.
  std::vector<KindCount> count_events(const CountOptions& options = {});
  /// Looks around the time of the id first, and reads at most about `most` events. Empty if none of
  /// these has this id.
  std::optional<GlobalSequence> find_event(const EventId& id, std::int64_t most = no_limit);
  /// The first event that was recorded at this time or later; after the last one if none was. It is
  /// looked for by halving: where clocks were set back or differ, others may be near it.
  GlobalSequence find_time(Timestamp time);
  /// The events that name `cause` as their cause and come after `after`; at most `limit`.
  std::vector<GlobalSequence> effects_of(const EventId& cause, GlobalSequence after,
                                         std::int64_t limit);
  /// Events of a correlation, or effects of an event, by the index of links.
  LinkedEvents linked_events(const LinkQuery& query);
  /// All that the event of this id and sequence led to; at most `limit`, the nearest first.
  Effects all_effects_of(const EventId& cause, GlobalSequence sequence, std::int64_t limit);
  /// The participants that every append requires.
  std::vector<RequiredParticipant> required_participants();

  /// Checks everything in the database, reading it from disk, and reports each problem. A damaged
  /// file is a reported problem, not an error. Appends continue meanwhile: it checks what existed
  /// when it began. Memory use stays constant. Only SQLite's own check holds a read transaction for
  /// its whole duration, because it checks the file at one moment. StoreBusy if SQLite's lock isn't
  /// free; StoreFailed if the file was replaced since the store was opened.
  VerifyResult verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options = {});

  // --- causes and effects

  /// Adds the events since the last call to the index of links, in steps with short transactions.
  /// Appends continue meanwhile, and don't maintain the index. Any number of processes may call it
  /// at once. StoreBusy, StoreFull and StoreFailed, as their names say; what was indexed stays.
  IndexedLinks index_links(const IndexLinksOptions& options = {});
  /// How many events that would add. Above `most_unindexed`, look-ups pass over the oldest of them.
  std::int64_t unindexed_events();

  // --- append ids

  /// Removes the append ids that were used before `before`. Ids are kept for ever unless they are
  /// purged. An append that repeats a purged id appends its events again. So purge only ids that no
  /// caller can try again. Removes a batch at a time, each in a short transaction. StoreBusy,
  /// StoreFull and StoreFailed, as their names say; batches that were removed before the error stay
  /// removed.
  PurgedAppendIds purge_append_ids(Timestamp before, const PurgeAppendIdsOptions& options = {});

 private:
  Store& store_;
};

}  // namespace stela
