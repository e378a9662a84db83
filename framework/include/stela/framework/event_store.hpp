// The port to where events are kept, and the extension point inside its transaction.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/context.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/function_ref.hpp>
#include <stela/framework/log.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/framework/transaction_outcome.hpp>

#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela {

class Transaction;

// --- writing

/// An event on its way into a store: encoded, and not yet anywhere.
struct NewEvent {
  std::string_view type = {};
  int schema_version = 1;
  bool publishes = false;
  std::string_view payload = {};
};

/// Without events it only checks the version: ConcurrencyConflict if that isn't the expected one.
struct StreamAppend {
  const StreamId& stream;
  ExpectedVersion expected = ExpectedVersion::any();
  std::span<const NewEvent> events = {};
};

/// One append: all of its streams in one transaction, or none.
struct AppendRequest {
  std::span<const StreamAppend> streams = {};
  const Context& context = current_context();
  /// An id of the caller's, at most 128 bytes: if an append with it was committed before, nothing
  /// is written and its result is returned. UsageError if that one appended other numbers of
  /// events; an append without events may be of any. Without events, the id alone is kept.
  std::string_view append_id = {};
};

struct AppendResult {
  /// The events have these sequences and all between, in the order of the request.
  GlobalSequence first = {};
  GlobalSequence last = {};
  /// The version of each stream of the request behind its events. In a repeated append 0 for a
  /// stream without events.
  std::vector<StreamVersion> versions = {};
  /// The append id was committed before; this is what came of it then.
  bool repeated = false;
};

// --- reading

enum class Direction : std::uint8_t { forward, backward };

inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

/// Which events of one stream. All bounds are inclusive.
struct StreamQuery {
  StreamVersion from{1};
  StreamVersion to = StreamVersion::max();
  /// Only what the store held when this sequence was its last.
  GlobalSequence up_to = GlobalSequence::max();
  Direction direction = Direction::forward;
  std::int64_t limit = no_limit;
};

/// Which events of the whole store. All bounds are inclusive; an empty list doesn't filter.
struct AllQuery {
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};
  /// By name: "order-7".
  std::vector<std::string> streams = {};
  std::vector<std::string> categories = {};
  std::vector<std::string> event_types = {};
  Direction direction = Direction::forward;
  std::int64_t limit = no_limit;
};

/// How a store feeds an EventRange: page by page, so that memory stays flat and no lock or
/// transaction is held while the reader works.
class STELA_FRAMEWORK_EXPORT EventCursor {
 public:
  virtual ~EventCursor() = default;
  /// The next events, valid until the next call; none at the end.
  virtual std::span<const StoredEvent> next_page() = 0;
};

/// Events, read as they are asked for: `for (const StoredEvent& event : range)`. An event is valid
/// until the iterator moves on. A range must not outlive its store, nor, if it was read through a
/// Transaction, the work that was handed that.
/// Threads: one at a time.
class EventRange {
 public:
  explicit EventRange(std::unique_ptr<EventCursor> cursor) noexcept : cursor_{std::move(cursor)} {}

  class Iterator {
   public:
    using value_type = StoredEvent;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(EventRange& range) : range_{&range} { range_->turn_page(); }

    const StoredEvent& operator*() const noexcept { return range_->page_[range_->at_]; }
    const StoredEvent* operator->() const noexcept { return &**this; }
    Iterator& operator++() {
      if (++range_->at_ == range_->page_.size()) range_->turn_page();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return range_->page_.empty(); }

   private:
    EventRange* range_ = nullptr;
  };

  /// To be called once.
  Iterator begin() { return Iterator{*this}; }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// For those who work a page at a time.
  std::span<const StoredEvent> next_page() { return cursor_->next_page(); }

 private:
  void turn_page() {
    page_ = cursor_->next_page();
    at_ = 0;
  }

  std::unique_ptr<EventCursor> cursor_;
  std::span<const StoredEvent> page_;
  std::size_t at_ = 0;
};

// --- snapshots

/// The state of an aggregate, encoded, as of a version of its stream.
struct StoredSnapshot {
  StreamVersion version = {};
  /// The sequence of the event of that version.
  GlobalSequence sequence = {};
  /// The version of the state's own layout.
  int state_version = 1;
  std::string payload = {};
};

// --- the ports

/// Whether an event is to be published, asked when it is recorded.
using PublicationPolicy = std::function<bool(const EventType&, const StreamId&)>;

/// What everybody who writes to one store follows.
struct Conventions {
  Codec codec = Codec::json;
  /// Empty: each event says so itself (`stela::should_publish`).
  PublicationPolicy publishes = {};
  LogSink* log = &no_log();
  MetricSink* metrics = &no_metrics();
};

/// What repositories read from and append to: a store, or an open transaction of one.
class STELA_FRAMEWORK_EXPORT EventLog {
 public:
  virtual ~EventLog() = default;

  virtual const Conventions& conventions() const noexcept = 0;

  /// Appends all or nothing. ConcurrencyConflict if a stream isn't where it was expected;
  /// StoreBusy, StoreFull, StoreFailed, CommitInDoubt as their names say.
  virtual AppendResult append(const AppendRequest& request) = 0;

  virtual EventRange read_stream(const StreamId& stream, const StreamQuery& query = {}) = 0;

  /// The newest snapshot of the stream, if there is one at or before both bounds.
  virtual std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                                      GlobalSequence up_to) = 0;
  /// Keeps the snapshot unless a newer one is there. Never part of an append's transaction.
  virtual void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) = 0;
  virtual void drop_snapshot(const StreamId& stream) = 0;

  /// Runs `work` inside one write transaction, on this thread: what it appends and what it does
  /// through the transaction commit together when it returns, or not at all if it throws. On an
  /// open transaction it is a savepoint: if it throws, all of `work` is undone and nothing else,
  /// and who catches that may go on; what it did is committed with the transaction.
  virtual void transact(FunctionRef<void(Transaction&)> work) = 0;

  /// What the event of this sequence depends on, as it is read through this log: the outcome of the
  /// open transaction, or of the savepoint in it, that appended it; null if it is committed.
  virtual std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) = 0;

  /// The object to keep for longer than a call: this one, or, if this is a handle that can be
  /// moved, one that stays where it is. It lives as long as what the handle stands for.
  virtual EventLog& anchor() noexcept { return *this; }
};

/// An open write transaction. Reads through it see what it wrote. Snapshots that are saved through
/// it are written after the commit, when listeners were told; what fails then is only logged.
/// Threads: belongs to the thread that `transact` calls.
class STELA_FRAMEWORK_EXPORT Transaction : public EventLog {};

/// Something that takes part in every append, and without which nobody may append.
class STELA_FRAMEWORK_EXPORT Participant {
 public:
  virtual ~Participant() = default;

  /// Recorded in the database: whoever appends without a participant of this name is refused.
  virtual std::string_view name() const noexcept = 0;
  /// What else must be the same in every process: a partitioner's name, a projector's version.
  virtual std::string_view detail() const noexcept = 0;
  /// Whether it can take part where the database has recorded this detail. A participant that knows
  /// several versions of itself follows the recorded one.
  virtual bool accepts(std::string_view recorded) const noexcept { return recorded == detail(); }
  /// What it remembers of the database no longer holds: a transaction was rolled back, or another
  /// process wrote.
  virtual void forget() noexcept {}
};

/// User code that runs inside the transaction of every append, and sees the events with their
/// sequences: an inline projector, for example. It runs on the appending thread, and its append
/// shares the transaction with no other.
class STELA_FRAMEWORK_EXPORT TransactionParticipant : public Participant {
 public:
  /// Throwing rolls the append back; the exception reaches whoever appends.
  virtual void on_append(Transaction& transaction, std::span<const StoredEvent> events) = 0;
};

/// What was just committed. `events` may be read from any thread until the notice returns.
struct CommitNotice {
  std::span<const StoredEvent> events = {};
};

/// Keeps a listener connected for as long as it lives. When it has ended the listener isn't running
/// any more: its end waits for calls on other threads, so hold nothing then that they wait for. It
/// may end inside a call of the listener, which then runs to its end.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT Subscription {
 public:
  Subscription() noexcept;
  explicit Subscription(std::shared_ptr<void> connection) noexcept;
  ~Subscription();
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;

  void disconnect() noexcept;

 private:
  std::shared_ptr<void> connection_;
};

/// Where events are kept.
/// Threads: any number at once.
class STELA_FRAMEWORK_EXPORT EventStore : public EventLog {
 public:
  /// Events of the whole store, up to what is its last one now.
  virtual EventRange read_all(const AllQuery& query = {}) = 0;
  /// The events with these sequences, in ascending order; those that don't exist are left out.
  virtual EventRange read_at(std::span<const GlobalSequence> sequences) = 0;
  /// 0 if the store is empty.
  virtual GlobalSequence last_sequence() = 0;

  /// From now on `participant` takes part in every append of this process, and the database
  /// requires it of every process. It must outlive the store or be detached. UsageError if one of
  /// its name is attached already.
  virtual void attach(TransactionParticipant& participant) = 0;
  /// This process stops appending with it; the database still requires it. Waits for the open
  /// transaction of another thread, however long that takes: don't wait in a transaction for a
  /// thread that detaches, or that destroys an Outbox or Projections.
  virtual void detach(TransactionParticipant& participant) = 0;
  /// The database no longer requires a participant of this name.
  virtual void forget_participant(std::string_view name) = 0;

  /// Calls `listener` after each commit of events through this store, on the committing thread.
  /// What it throws goes to the log; nobody else is stopped.
  virtual Subscription on_commit(std::function<void(const CommitNotice&)> listener) = 0;

  EventStore& anchor() noexcept override { return *this; }
};

/// Who listens to the commits of a store: for classes that implement EventStore.
/// Threads: any number at once.
class STELA_FRAMEWORK_EXPORT CommitListeners {
 public:
  /// What a listener throws goes to the log of `conventions`, which must outlive this.
  explicit CommitListeners(const Conventions& conventions);
  ~CommitListeners();
  CommitListeners(const CommitListeners&) = delete;
  CommitListeners& operator=(const CommitListeners&) = delete;

  Subscription add(std::function<void(const CommitNotice&)> listener);
  bool is_empty() const noexcept;
  void notify(const CommitNotice& notice) noexcept;

 private:
  struct Signal;
  const Conventions& conventions_;
  std::unique_ptr<Signal> signal_;
};

}  // namespace stela
