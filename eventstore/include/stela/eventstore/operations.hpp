// Operations on an event store in use: look up, verify, purge.
#pragma once

#include <stela/eventstore/append_ids.hpp>
#include <stela/eventstore/catalogue.hpp>
#include <stela/eventstore/export.hpp>
#include <stela/eventstore/links.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/framework/function_ref.hpp>

#include <optional>
#include <vector>

namespace stela {

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
