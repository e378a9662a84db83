// What operators look up in an event store, and do to it, while it is in use.
#pragma once

#include <stela/eventstore/append_ids.hpp>
#include <stela/eventstore/catalogue.hpp>
#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/framework/function_ref.hpp>

#include <optional>
#include <vector>

namespace stela {

/// Looks at a store, and changes what no append does. (`export_events`, `import_events`, `salvage`
/// and `sqlite::backup` copy a store to somewhere else.)
/// Threads: any number at once, beside writers.
class STELA_EVENTSTORE_EXPORT StoreOperations {
 public:
  /// The store must outlive it; its handle may be moved.
  explicit StoreOperations(Store& store) : store_{store.anchor()} {}

  // --- looking

  std::vector<StreamEntry> list_streams(const StreamListing& which = {});
  std::vector<SnapshotEntry> list_snapshots(const StreamListing& which = {});
  /// Counts every event, in steps that hold no transaction for long. Empty if it was stopped.
  std::vector<KindCount> count_events(const CountOptions& options = {});
  /// Looks through all events, the newest first. Nothing if there is no such event.
  std::optional<GlobalSequence> find_event(const EventId& id);
  /// The events that name `cause` as their cause, all of them after `after`; at most `limit`.
  std::vector<GlobalSequence> effects_of(const EventId& cause, GlobalSequence after,
                                         std::int64_t limit);
  /// Who must take part in every append.
  std::vector<RequiredParticipant> required_participants();

  /// Looks at everything in the database, from disk, and reports what is wrong with it; a damaged
  /// file is a problem reported, not an error thrown. Appends go on beside it: it looks at what was
  /// there when it began. Memory stays flat, and no read transaction lasts but that of SQLite's own
  /// check, which sees the whole file at one moment. StoreBusy if SQLite's lock can't be had;
  /// StoreFailed if the file was replaced since the store was opened.
  VerifyResult verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options = {});

  // --- append ids

  /// Removes the append ids that were used before `before`. Nothing else does: an id is kept for
  /// ever unless it is purged. An append that repeats a purged id isn't a repetition any more: it
  /// appends its events again. So purge what is older than anybody's last attempt can be.
  /// They go a batch at a time, each in a short transaction. StoreBusy, StoreFull, StoreFailed as
  /// their names say; what was removed before stays removed.
  PurgedAppendIds purge_append_ids(Timestamp before, const PurgeAppendIdsOptions& options = {});

 private:
  Store& store_;
};

}  // namespace stela
