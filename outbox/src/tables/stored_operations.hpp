// The operators' port to the outbox, on its tables.
#pragma once

#include "database/connection.hpp"
#include "relay/operations_port.hpp"
#include "tables/generations.hpp"
#include "tables/placement.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/outbox/operations.hpp>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::outbox {

/// The parked messages of a stream up to one of them.
struct ParkedPrefix {
  std::int64_t stream = 0;
  GlobalSequence through = {};
  /// The planned messages, in order. Empty: whatever is parked.
  std::span<const GlobalSequence> planned = {};
  /// The stream's first parked message must be the first planned one, parked at this time.
  std::optional<Timestamp> parked_at = {};
  /// Also retries messages that are parked only because of these.
  bool with_followers = true;
};

/// The result of a retry.
struct RetriedRun {
  /// How many planned messages, and how many others, are sent again.
  std::int64_t messages = 0;
  std::int64_t joined = 0;
  /// Why nothing was done.
  std::string changed = {};
};

struct RetriedRuns {
  /// One for each prefix.
  std::vector<RetriedRun> runs = {};
  /// How many followers are sent again.
  std::int64_t more = 0;
};

/// "3 messages, 5 to 9", for the log.
std::string in_words(std::span<const std::int64_t> sequences);

/// How many messages one transaction resends at most.
inline constexpr std::int64_t step_messages = 500;

/// Whether more than step_messages redeliveries of the stream come after its first parked
/// message: a retry would have to renumber them.
bool has_many_later(database::Connection& connection, std::int64_t stream);

/// Messages by stream, in order.
using ByStream = std::map<std::int64_t, std::vector<GlobalSequence>>;

/// An operator's action, as logged.
struct Action {
  std::string_view what;
  std::string_view who;
  std::string selection = {};
  /// How many messages are meant. Unset if unknown.
  std::optional<std::int64_t> planned = {};
  /// More steps must follow.
  bool leads_on = false;
};

/// The end of an action.
struct ActionEnd {
  /// Messages that it left alone.
  std::int64_t changed = 0;
  /// The log's text if it took more than one step.
  std::string detail = {};
  /// False if it was stopped early.
  bool finished = true;
};

/// The result of giving messages up.
struct GivenUp {
  std::int64_t messages = 0;
  /// Their followers, which are sent again.
  std::int64_t followers = 0;
  /// The numbers of their streams.
  std::set<std::int64_t> streams = {};
};

/// Threads: one at a time.
class StoredOperations final : public relay::Operations {
 public:
  /// `store` and `partitioner` must outlive it.
  StoredOperations(Store& store, const Partitioner& partitioner) noexcept
      : store_{store}, partitioner_{partitioner} {}

  std::int64_t retry(std::int64_t stream, GlobalSequence through, std::string_view who) override;
  /// In one transaction, plus further ones if there are too many followers.
  RetriedRuns retry(std::span<const ParkedPrefix> prefixes, std::string_view who);
  /// Also discards a pending message of a stopped partition.
  bool discard(GlobalSequence sequence, std::string_view who) override;
  /// In one transaction, plus further ones if there are too many followers.
  GivenUp discard(std::span<const PlannedDiscard> planned, std::string_view who);
  /// Skips unpublished events.
  std::int64_t republish(std::span<const GlobalSequence> sequences, std::string_view who) override;
  void resize(int partition_count, std::string_view who) override;
  /// UsageError if it isn't stopped.
  void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence,
             std::string_view who) override;

  /// Resumes a partition that was stopped by poison; UsageError if it was stopped by something
  /// else.
  void resume(PartitionId partition, std::string_view who);
  /// Logs whatever `work` notes as one action, with an item for each step.
  void act(const Action& action, FunctionRef<ActionEnd()> work);
  /// Runs a transaction; its notes are logged if it is committed.
  void write(const std::function<void(database::Connection&)>& work);
  /// `count`: how many messages were affected.
  void note(database::Connection& connection, std::string_view who, std::string_view what,
            const std::string& detail, std::int64_t count = 0);
  /// Lets a partition that is backing off try at once; false if it isn't backing off.
  bool try_now(PartitionId partition, std::string_view who);
  /// Enqueues events that were never enqueued, and skips the rest. Returns how many.
  std::int64_t enqueue_missing(std::span<const GlobalSequence> sequences, std::string_view who);
  /// Resends published events that are missing at the broker, which count as unpublished until it
  /// has them. Skips the rest. Returns how many. UsageError while a partition is stopped because
  /// the broker lost messages, since they may reappear, or is adopted and no worker has looked at
  /// the broker since.
  std::int64_t send_lost(std::span<const GlobalSequence> sequences, std::string_view who);
  /// Records that everything that the partition counts as published was compared with the broker,
  /// whose stream begins at `first`, and that missing messages were sent again.
  void note_compared(PartitionId partition, std::optional<std::int64_t> first);
  /// Corrects wrong counts of messages in partitions; a dry run only finds them. Returns how many.
  std::int64_t mend_counts(Mode mode, std::string_view who);
  /// Moves messages out of missing partitions and sends them from the right ones.
  std::int64_t rescue(std::string_view who);

 private:
  struct Place {
    GlobalSequence sequence = {};
    std::int64_t stream = 0;
    Generation generation = {};
    /// It was published, but no longer counts as such.
    bool was_lost = false;
  };
  /// Sequences of a stream, and whether each was lost.
  using SentAgain = std::map<std::int64_t, bool>;
  enum class Why : std::uint8_t { republish, missing, lost };
  struct Discarded {
    GlobalSequence sequence = {};
    std::int64_t stream = 0;
    std::int64_t partition = 0;
    std::int64_t attempts = 0;
    std::string error = {};
    std::optional<std::string> failure_class = {};
  };
  /// The action that steps belong to.
  struct Current {
    Action action;
    /// 0 if nothing is noted yet.
    std::int64_t number = 0;
    std::int64_t steps = 0;
    std::int64_t done = 0;

    bool has_all() const noexcept { return done == action.planned && !action.leads_on; }
  };
  struct GoOn {
    PartitionId partition = {};
    std::optional<std::uint64_t> broker_sequence = {};
    /// The known position of its last message at the broker is void.
    bool anew = false;
  };

  /// Counts the planned messages that were sent.
  RetriedRun retry_one(database::Connection& connection, Placement& placement,
                       const ParkedPrefix& prefix, std::string_view who);
  void release(database::Connection& connection, Placement& placement, std::int64_t stream,
               SentAgain parked);
  static std::map<int, bool> uncertain_partitions(database::Connection& connection);
  [[noreturn]] static void refuse_uncertain(int partition, bool is_stopped);
  void note_step(database::Connection& connection, std::string_view what, const std::string& detail,
                 std::int64_t count);
  void end(const ActionEnd& end, std::string_view state);
  void send_again(database::Connection& connection, Placement& placement, const Place& place,
                  std::string_view kind);
  /// Adds later pending redeliveries of the stream, which are removed and follow here in order.
  static void add_later(database::Connection& connection, std::int64_t stream, SentAgain& all);
  std::int64_t send_all_again(std::span<const GlobalSequence> sequences, Why why,
                              std::string_view who);
  /// The stream that it was parked in; unset if it isn't parked.
  std::optional<std::int64_t> discard_parked(database::Connection& connection,
                                             const PlannedDiscard& planned);
  std::optional<std::int64_t> discard_stopped(database::Connection& connection,
                                              GlobalSequence sequence);
  std::optional<std::int64_t> discard_redeliveries(database::Connection& connection,
                                                   Discarded discarded);
  std::int64_t send_followers(database::Connection& connection, const ByStream& gone,
                              std::string_view who);
  std::int64_t send_more_followers(const ByStream& gone, std::int64_t sent, std::string_view who);
  void keep_discarded(database::Connection& connection, const Discarded& discarded);
  void let_go_on(const GoOn& how, std::string_view what, const std::string& detail,
                 std::string_view who);

  Store& store_;
  const Partitioner& partitioner_;
  std::optional<Current> current_ = {};
};

}  // namespace stela::outbox
