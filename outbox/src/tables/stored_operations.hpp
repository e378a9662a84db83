// The operators' port to the outbox, on SQLite.
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
  /// Those that somebody decided to retry, in order. Empty: what there is.
  std::span<const GlobalSequence> planned = {};
  /// The stream's first parked message must be the first planned one, parked at this time.
  std::optional<Timestamp> parked_at = {};
  /// Retries also what is parked behind it alone.
  bool with_followers = true;
};

/// What became of it.
struct RetriedRun {
  /// Those that were planned, and others.
  std::int64_t messages = 0;
  std::int64_t joined = 0;
  /// Why nothing was done.
  std::string changed = {};
};

struct RetriedRuns {
  /// One for each prefix.
  std::vector<RetriedRun> runs = {};
  /// Their followers.
  std::int64_t more = 0;
};

/// "3 messages, 5 to 9", for the record.
std::string in_words(std::span<const std::int64_t> sequences);

/// As many messages as one transaction sends again.
inline constexpr std::int64_t step_messages = 500;

/// Whether more messages of the stream than that are to be sent again, and come after its first
/// parked one: they would have to be numbered anew with what is retried.
bool has_many_later(database::Connection& connection, std::int64_t stream);

/// By stream: messages of it, in order.
using ByStream = std::map<std::int64_t, std::vector<GlobalSequence>>;

/// An action of an operator, as the log has it.
struct Action {
  std::string_view what;
  std::string_view who;
  std::string selection = {};
  /// How many messages are meant. Unset: that isn't known.
  std::optional<std::int64_t> planned = {};
  /// More is to be done after that.
  bool leads_on = false;
};

/// How an action ended.
struct ActionEnd {
  /// Messages that it left alone.
  std::int64_t changed = 0;
  /// What the log says if it took more than one step.
  std::string detail = {};
  /// False if it was stopped before its end.
  bool finished = true;
};

/// What giving messages up came to.
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
  /// In one transaction, and further ones for followers that are too many for it.
  RetriedRuns retry(std::span<const ParkedPrefix> prefixes, std::string_view who);
  /// Also a message that waits in a stopped partition.
  bool discard(GlobalSequence sequence, std::string_view who) override;
  /// In one transaction, and further ones for followers that are too many for it.
  GivenUp discard(std::span<const PlannedDiscard> planned, std::string_view who);
  /// Passes over what isn't published.
  std::int64_t republish(std::span<const GlobalSequence> sequences, std::string_view who) override;
  void resize(int partition_count, std::string_view who) override;
  /// UsageError if it isn't stopped.
  void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence,
             std::string_view who) override;

  /// Lets a partition that poison stopped go on; UsageError if something else did.
  void resume(PartitionId partition, std::string_view who);
  /// Whatever `work` notes is one action in the log, with an item for each step.
  void act(const Action& action, FunctionRef<ActionEnd()> work);
  /// A transaction; what it notes is in the log if it is committed.
  void write(const std::function<void(database::Connection&)>& work);
  /// `count`: to how many messages it was done.
  void note(database::Connection& connection, std::string_view who, std::string_view what,
            const std::string& detail, std::int64_t count = 0);
  /// Lets a partition that backs off try at once; false if it doesn't.
  bool try_now(PartitionId partition, std::string_view who);
  /// Enqueues what was never enqueued, and passes over the rest. How many.
  std::int64_t enqueue_missing(std::span<const GlobalSequence> sequences, std::string_view who);
  /// Sends again what was published and isn't at the broker: until it is, it isn't published any
  /// more. Passes over the rest. How many. UsageError while a partition is stopped because the
  /// broker lost messages, as it may have them again, or adopted and nobody has looked since.
  std::int64_t send_lost(std::span<const GlobalSequence> sequences, std::string_view who);
  /// What a partition counts as published was all compared with the broker, whose stream begins at
  /// `first`, and what is missing was sent again.
  void note_compared(PartitionId partition, std::optional<std::int64_t> first);
  /// Counts the messages of partitions whose counts are wrong. How many partitions, which a dry run
  /// only looks for.
  std::int64_t mend_counts(Mode mode, std::string_view who);
  /// Takes messages out of partitions that don't exist, and sends them from where they belong.
  std::int64_t rescue(std::string_view who);

 private:
  struct Place {
    GlobalSequence sequence = {};
    std::int64_t stream = 0;
    Generation generation = {};
    /// It was published, and isn't any more.
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
    /// 0: nothing is noted yet.
    std::int64_t number = 0;
    std::int64_t steps = 0;
    std::int64_t done = 0;

    bool has_all() const noexcept { return done == action.planned && !action.leads_on; }
  };
  struct GoOn {
    PartitionId partition = {};
    std::optional<std::uint64_t> broker_sequence = {};
    /// What was known of its last message at the broker doesn't hold any more.
    bool anew = false;
  };

  /// Notes how many of those that were planned it sent.
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
  /// Adds what was to be sent again already, and comes later in the stream: it has to come later
  /// here too, and is taken out.
  static void add_later(database::Connection& connection, std::int64_t stream, SentAgain& all);
  std::int64_t send_all_again(std::span<const GlobalSequence> sequences, Why why,
                              std::string_view who);
  /// The stream that it was parked in; nothing if it isn't parked.
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
