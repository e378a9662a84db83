// Operations on an outbox, for operators. Relays may run meanwhile.
#pragma once

#include <stela/eventstore/operator_action.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/outbox/detail/broker_contents.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/messages.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/stray_events.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela {

struct OperatorOptions {
  /// The name of the operator, for the log of actions. Empty: the user and host of the process.
  std::string who = {};
  /// Needed by operations that recompute a message's partition: retry, republish, reconcile.
  const Partitioner* partitioner = &by_stream();
};

/// Selects parked messages. Exactly one of the first three members must be set.
struct ParkedSelection {
  std::vector<GlobalSequence> sequences = {};
  /// All parked messages of this stream.
  std::string stream = {};
  bool all = false;
  /// With `all`, and for a retry only: selects streams by their first parked message, which blocks
  /// the others. It must have this type, and its error must contain this text. Empty: any.
  std::string type = {};
  std::string error = {};
  /// With `all`: selects streams by the failure group of that message, see `groups`. A discard
  /// takes only that message.
  std::string group = {};
};

/// A stream's parked messages, at least one: the first, and those that wait behind it.
struct ParkedRun {
  std::string stream = {};
  /// In order.
  std::vector<GlobalSequence> sequences = {};
  /// When the first one was parked, and its error.
  Timestamp parked_at = {};
  std::string error = {};
  /// For the store's own use.
  std::int64_t stream_number = 0;

  GlobalSequence head() const { return sequences.front(); }
  GlobalSequence last() const { return sequences.back(); }
  std::int64_t messages() const noexcept { return static_cast<std::int64_t>(sequences.size()); }
};

struct RetryPlan {
  std::vector<ParkedRun> runs = {};
  /// The selection in words, for the log.
  std::string selection = {};

  std::int64_t messages() const noexcept {
    std::int64_t count = 0;
    for (const ParkedRun& run : runs) count += run.messages();
    return count;
  }
};

/// A stream that has changed since it was planned, and was left alone.
struct ChangedRun {
  ParkedRun planned = {};
  std::string why = {};
};

/// Unless it was stopped, each planned message is counted once, as done or as changed.
struct AppliedPlan {
  /// Streams and messages that are sent again, and how many of the messages weren't planned.
  std::int64_t streams = 0;
  std::int64_t messages = 0;
  std::int64_t joined = 0;
  /// Planned messages of these streams that were no longer parked.
  std::int64_t gone = 0;
  std::vector<ChangedRun> changed = {};
  /// False if it was stopped: a new plan takes the rest.
  bool finished = true;

  /// How many planned messages are sent again.
  std::int64_t messages_done() const noexcept { return messages - joined; }
  /// How many planned messages are gone, or in streams that were left alone.
  std::int64_t messages_changed() const noexcept {
    std::int64_t count = gone;
    for (const ChangedRun& run : changed) count += run.planned.messages();
    return count;
  }
};

/// Parked messages with similar failures: the same reason, event type, and error apart from its
/// variable parts.
struct FailureGroup {
  std::string group = {};
  /// How many streams these messages block.
  std::int64_t streams = 0;
  Timestamp first_at = {};
  Timestamp last_at = {};
  /// One of the messages.
  OutboxMessage sample = {};
};

/// Selects published events. At least one bound must be set.
struct RepublishSelection {
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};
  std::string stream = {};
  /// Only events that this partition published.
  std::optional<PartitionId> partition = {};
};

/// How many messages an operation changed, or would change.
struct Affected {
  std::int64_t messages = 0;
  std::int64_t streams = 0;
  /// Messages parked behind discarded ones of their stream, which are sent again.
  std::int64_t followers = 0;
  /// Messages that have changed since they were planned, and were left alone.
  std::int64_t changed = 0;
  /// Set if a republish was stopped: the first event that it didn't examine.
  std::optional<GlobalSequence> next = {};
  /// False if a discard was stopped: a new plan takes the rest.
  bool finished = true;
};

struct PlannedDiscard {
  GlobalSequence sequence = {};
  /// Unset: it is pending in a stopped partition.
  std::optional<Timestamp> parked_at = {};
};

struct DiscardPlan {
  /// In the order of their sequences.
  std::vector<PlannedDiscard> messages = {};
  /// The result if nothing changes.
  Affected affected = {};
  /// The selection in words, for the log.
  std::string selection = {};
};

struct Reconciled {
  /// Publishable events that were examined.
  std::int64_t checked = 0;
  /// Events without any state, which are now enqueued, and the first hundred of them.
  std::int64_t missing = 0;
  std::vector<GlobalSequence> examples = {};
  /// Partitions whose counts were wrong and are corrected now.
  std::int64_t miscounted = 0;
};

struct Purged {
  std::int64_t batches = 0;
  std::int64_t actions = 0;
};

struct Resized {
  int before = 0;
  int after = 0;
  /// The number of the new generation. Events that are appended from now on belong to it. They wait
  /// until the older generations are drained.
  std::int64_t generation = 0;
};

struct Synced {
  /// Partitions of the current generation that were missing and have been added.
  std::vector<PartitionId> added = {};
  /// Drained partitions of older generations. Workers no longer use them.
  std::vector<PartitionId> retired = {};
  /// Drained partitions that can't be retired while they have parked messages.
  std::vector<PartitionId> parked = {};
  /// Messages from missing partitions, which are sent again from the right ones.
  std::int64_t rescued = 0;
};

/// Whether to carry an operation out, or only to report what it would do.
enum class Mode : std::uint8_t { carry_out, dry_run };

/// Inspects and changes the outbox of a database. Relays may run meanwhile. Each change is one
/// transaction or a few bounded ones, and is recorded with the operator's name. Threads: one at a
/// time. Any number of objects, beside relays and appends.
class STELA_OUTBOX_EXPORT OutboxOperations {
 public:
  /// UsageError if the database has no outbox. `store` and the partitioner must outlive it.
  explicit OutboxOperations(Store& store, const OperatorOptions& options = {});
  ~OutboxOperations();
  OutboxOperations(const OutboxOperations&) = delete;
  OutboxOperations& operator=(const OutboxOperations&) = delete;

  // --- looking

  /// Called by retries, discards, republish, reconcile, compare and imports on their thread, about
  /// once per thousand events.
  void on_progress(std::function<void(const Progress&)> listener);

  /// Its cost depends only on the number of partitions and workers.
  OutboxStatus status();
  /// In order of their sequence. For the next page set `after`.
  std::vector<OutboxMessage> list(const MessageQuery& query = {});
  /// As `list`, and where to continue: within `most_looked` rows it may find few or none.
  MessagePage page(const MessageQuery& query = {});
  /// Empty if the event isn't published, or is older than the outbox.
  std::optional<OutboxMessage> show(GlobalSequence sequence);
  /// Parked messages by their failures, the largest groups first.
  std::vector<FailureGroup> groups();
  /// Published batches, the newest first, of one partition or of all.
  std::vector<PublishedBatch> batches(std::optional<PartitionId> partition = {}, int limit = 100);
  /// Actions of operators, the newest first; or the steps of one action.
  std::vector<OperatorAction> actions(const ActionQuery& query = {});

  // --- messages

  /// Sends parked messages again, those of a stream in order from its first parked message on.
  /// Messages that are parked only because of a selected one are sent too, even if a relay parks
  /// them meanwhile. NotFound if a selected message isn't parked. UsageError if a parked message
  /// that isn't selected blocks a selected one.
  Affected retry(const ParkedSelection& selection, Mode mode = Mode::carry_out);
  /// What a retry would send again now. At most a million streams.
  RetryPlan plan_retry(const ParkedSelection& selection);
  /// Carries a plan out: for each stream whose first parked message is still the planned one, sends
  /// all its parked messages again. Leaves other streams alone and names them. A requested `stop`
  /// ends it after the current step.
  AppliedPlan apply(const RetryPlan& plan, std::stop_token stop = {});
  /// Discards messages: parked ones, and pending ones of a stopped partition. Messages of the same
  /// stream that are parked only because of a discarded one are sent again. UsageError if a
  /// selected message is neither parked nor pending in a stopped partition.
  Affected discard(const ParkedSelection& selection, Mode mode = Mode::carry_out);
  DiscardPlan plan_discard(const ParkedSelection& selection);
  /// Discards planned messages, except those retried, discarded or parked again since. A requested
  /// `stop` ends it after the current step.
  Affected apply(const DiscardPlan& plan, std::stop_token stop = {});
  /// Sends published events again, in order, each as a separate message. Skips events that aren't
  /// published. If `stop` is requested it ends early, and `next` says where to continue.
  Affected republish(const RepublishSelection& selection, Mode mode = Mode::carry_out,
                     std::stop_token stop = {});
  /// Enqueues publishable events from `from` on that are neither pending, parked, discarded nor
  /// published, behind redeliveries requested earlier. Also recounts the messages of all
  /// partitions.
  Reconciled reconcile(GlobalSequence from = GlobalSequence{1}, Mode mode = Mode::carry_out);
  /// Checks whether the broker has the events that count as published, from `from` on. Sends each
  /// missing one again as a separate message: until the broker has stored it, the event counts as
  /// unpublished, and it is parked if the broker refuses it. Events that are published meanwhile
  /// aren't checked. UsageError if it would send something while a partition is stopped because the
  /// broker lost messages, or is adopted and no worker has looked at the broker since. Throws the
  /// broker's errors before it changes anything.
  Compared compare(BrokerContents& broker, GlobalSequence from = GlobalSequence{1},
                   Mode mode = Mode::carry_out);
  /// Finds events of this store that the broker has and the store lacks, as after restoring an
  /// older backup. An event fits if it is the next version of its stream. Changes nothing. Throws
  /// the broker's errors.
  ImportPlan plan_import(BrokerArchive& broker);
  /// Appends the events that fit, in order, with their ids, versions, times, contexts and payloads;
  /// names the others and leaves them out. Imported events count as published, and no relay
  /// publishes them again. Append participants don't see them: UsageError if there are any besides
  /// the outbox. Each step is one transaction; if it ends early, a new plan continues.
  AppliedImport apply(const ImportPlan& plan, BrokerArchive& broker, std::stop_token stop = {});
  /// Removes entries older than `older_than` from the logs of batches and of actions, in bounded
  /// steps. Discarded messages stay discarded.
  Purged purge(std::chrono::hours older_than, Mode mode = Mode::carry_out);

  // --- partitions

  /// Spreads the events that are appended from now on over another number of partitions.
  Resized resize(int partition_count);
  /// Adds missing partitions. With `prune`, also retires drained ones.
  Synced sync(bool prune, Mode mode = Mode::carry_out);
  /// Resumes a partition that `on_poison = stop` stopped. The message is tried again.
  void resume(PartitionId partition);
  /// Ends a partition's back-off: it tries again when its worker next looks. False if it isn't
  /// backing off.
  bool try_now(PartitionId partition);
  /// Resumes a stopped partition from the broker's present contents, whatever stopped it. Marks its
  /// own messages there as published and skips others; the next message follows them all. Messages
  /// that the broker has lost are sent again only by `republish` or `compare`. Messages before
  /// `broker_sequence`, or before the partition's last known position, aren't examined if the store
  /// knows the message there. UsageError if it isn't stopped.
  void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela
