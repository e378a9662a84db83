// What operators do to an outbox, beside the relays that work on it.
#pragma once

#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/outbox/broker_contents.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/messages.hpp>
#include <stela/outbox/partitioner.hpp>

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
  /// Who is acting, for the record; empty: the user and host that the process runs as.
  std::string who = {};
  /// Needed where a message's partition is worked out anew: retry, republish, reconcile.
  const Partitioner* partitioner = &by_stream();
};

/// Which parked messages are meant: exactly one of the first three is set.
struct ParkedSelection {
  std::vector<GlobalSequence> sequences = {};
  /// All of a stream's.
  std::string stream = {};
  bool all = false;
  /// For a retry of all: only streams whose first parked message, which the others wait behind, is
  /// of this type, and has an error that contains this text. Empty: any.
  std::string type = {};
  std::string error = {};
};

/// Which published events are meant; at least one of the bounds is set.
struct RepublishSelection {
  GlobalSequence first{1};
  GlobalSequence last = GlobalSequence::max();
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};
  std::string stream = {};
};

/// How much was changed, or would be.
struct Affected {
  std::int64_t messages = 0;
  std::int64_t streams = 0;
  /// Messages that were parked behind discarded ones, and are sent again.
  std::int64_t followers = 0;
  /// Of a republish that was asked to stop: the first event that it didn't look at.
  std::optional<GlobalSequence> next = {};
};

struct Reconciled {
  /// Publishable events that were looked at.
  std::int64_t checked = 0;
  /// Those that are in none of the states, and are enqueued now; the first hundred of them.
  std::int64_t missing = 0;
  std::vector<GlobalSequence> examples = {};
  /// Partitions whose counts weren't those of their messages, and are now.
  std::int64_t miscounted = 0;
};

struct Purged {
  std::int64_t batches = 0;
  std::int64_t actions = 0;
};

struct Resized {
  int before = 0;
  int after = 0;
  /// What is appended from now on belongs to this one, and waits until the ones before it are
  /// drained.
  std::int64_t generation = 0;
};

struct Synced {
  /// Partitions of the current generation that were missing.
  std::vector<PartitionId> added = {};
  /// Drained ones of older generations, which nobody looks at any more.
  std::vector<PartitionId> retired = {};
  /// Those that aren't retired as long as what they lost at the broker isn't settled.
  std::vector<PartitionId> unsettled = {};
  /// Those that aren't retired as long as they have parked messages.
  std::vector<PartitionId> parked = {};
  /// Messages in partitions that don't exist, which are sent again from where they belong.
  std::int64_t rescued = 0;
};

/// Whether an operation is carried out, or only says what it would do.
enum class Mode : std::uint8_t { carry_out, dry_run };

/// Looks at the outbox of a database, and changes it under the relays' feet: each change is one
/// transaction or a few bounded ones, and each is recorded with who made it.
/// Threads: one at a time; any number of them beside relays and appends.
class STELA_OUTBOX_EXPORT OutboxOperations {
 public:
  /// UsageError if the database has no outbox. `store` and the partitioner must outlive it.
  explicit OutboxOperations(Store& store, const OperatorOptions& options = {});
  ~OutboxOperations();
  OutboxOperations(const OutboxOperations&) = delete;
  OutboxOperations& operator=(const OutboxOperations&) = delete;

  // --- looking

  /// Called by republish, reconcile and compare on their thread, about once for a thousand events.
  void on_progress(std::function<void(const Progress&)> listener);

  /// Its cost grows with the number of partitions and workers alone.
  OutboxStatus status();
  /// In order of their sequence; page on with `after`.
  std::vector<OutboxMessage> list(const MessageQuery& query = {});
  /// Nothing if the event isn't one that is published, or is from before the outbox.
  std::optional<OutboxMessage> show(GlobalSequence sequence);
  /// The newest batches first, of one partition or all, that were published after `since`.
  std::vector<PublishedBatch> batches(std::optional<PartitionId> partition = {}, int limit = 100);
  /// The newest first; those before `before`, if it is given.
  std::vector<OperatorAction> actions(int limit = 100, std::int64_t before = 0);

  // --- messages

  /// Sends parked messages again, in order, each stream's from its first one on. NotFound if one
  /// isn't parked; UsageError if one waits behind one of its stream that isn't meant.
  Affected retry(const ParkedSelection& selection, Mode mode = Mode::carry_out);
  /// Gives messages up for good: parked ones, and those that wait in a stopped partition. What is
  /// parked behind one of them in its stream, and behind no other, is sent again. UsageError if one
  /// is neither parked nor waits there.
  Affected discard(const ParkedSelection& selection, Mode mode = Mode::carry_out);
  /// Sends published events again, in order, each as a message of its own. What isn't published is
  /// passed over. Once `stop` is requested it ends early: `next` says where.
  Affected republish(const RepublishSelection& selection, Mode mode = Mode::carry_out,
                     std::stop_token stop = {});
  /// Enqueues publishable events from `from` on that are neither waiting, parked, discarded nor
  /// published, behind what was to be sent again before, and counts anew what partitions have.
  Reconciled reconcile(GlobalSequence from = GlobalSequence{1}, Mode mode = Mode::carry_out);
  /// Looks whether what counts as published stands at the broker, and sends again what doesn't,
  /// from `from` on, each as a message of its own: until the broker has it again it isn't
  /// published, and it is parked if the broker refuses it. What is published meanwhile isn't looked
  /// at. Carried out from the first event on, it settles what adopted partitions have lost. Throws
  /// what the broker throws, before anything is changed.
  Compared compare(BrokerContents& broker, GlobalSequence from = GlobalSequence{1},
                   Mode mode = Mode::carry_out);
  /// Settles what adopted partitions have lost at the broker, and sends nothing: it stays published
  /// here and missing there. In how many partitions; 0 if there was no loss.
  std::int64_t accept_losses(Mode mode = Mode::carry_out);
  /// Removes what is older from the logs of batches and of actions, in bounded steps. What is
  /// discarded stays so.
  Purged purge(std::chrono::hours older_than, Mode mode = Mode::carry_out);

  // --- partitions

  /// Spreads what is appended from now on over another number of partitions.
  Resized resize(int partition_count);
  /// Adds what is missing; with `prune`, retires what is drained.
  Synced sync(bool prune, Mode mode = Mode::carry_out);
  /// Lets a partition go on that was stopped by `on_poison = halt`: the message is tried again.
  void resume(PartitionId partition);
  /// Lets a stopped partition go on, whatever stopped it, with what stands at the broker as it is:
  /// what is ours there is marked, what isn't is passed over, and the next message goes behind all
  /// of it. If the broker stands before where the partition was, or has another stream, that is a
  /// loss, which `compare` or `accept_losses` settles. What stands before `broker_sequence`, or
  /// before where the partition was known to be, isn't looked at. UsageError if it isn't stopped.
  void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela
