// The interface of event stores, and of code that takes part in their transactions.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/codec/codec.hpp>
#include <stela/framework/context.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/detail/store_identity.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/key_id.hpp>
#include <stela/framework/log.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/query.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/framework/tags.hpp>
#include <stela/framework/transaction_outcome.hpp>

#include <cstdint>
#include <functional>
#include <iterator>
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

/// An encoded event that isn't stored yet.
struct NewEvent {
  std::string_view type = {};
  int schema_version = 1;
  bool publishes = false;
  std::string_view payload = {};
  /// Tags beside that of its stream. At most 100.
  std::span<const Tag> tags = {};
  /// The categories of tags that its type declares, if the appender knows the type. A store
  /// compares them with what the type carries in its database.
  std::optional<std::span<const TagDeclaration>> declared = {};
  /// Nil: the store generates one. It must be unique; the store doesn't check that.
  EventId id = {};
  /// The keys that its personal fields are sealed with. SubjectForgotten if one was destroyed.
  std::span<const KeyId> keys = {};
  /// The highest number among `keys`.
  std::int64_t newest_key = 0;
  /// Replaces the request's context. Without a correlation id, the event shares that of the
  /// request.
  const Context* context = nullptr;
};

/// The events to append to one stream. Without events, only the version is checked:
/// ConcurrencyConflict if it isn't the expected one. A stream may appear several times in a
/// request, so that events of several streams keep their order.
struct StreamAppend {
  const StreamId& stream;
  ExpectedVersion expected = ExpectedVersion::any();
  std::span<const NewEvent> events = {};
};

/// One append: all of its streams in one transaction, or nothing.
struct AppendRequest {
  std::span<const StreamAppend> streams = {};
  const Context& context = current_context();
  /// An id chosen by the caller, at most 128 bytes. If an append with this id was committed before,
  /// nothing is written, and its result is returned. UsageError if that append had other numbers of
  /// events; an append without events may repeat any. An append without events stores only the id.
  std::string_view append_id = {};
  /// Checked after the append id, so a repeated append succeeds even if its condition no longer
  /// holds, and before the versions. Its outcome is checked first, then its position, its tag
  /// epoch, and its query. Must outlive the append.
  const AppendCondition* condition = nullptr;
};

struct AppendResult {
  /// The sequence of the first event. The others follow it, in the order of the request.
  GlobalSequence first = {};
  GlobalSequence last = {};
  /// The version of the stream after each entry of the request, as the entry left it. In a repeated
  /// append it is the stream's after the whole append, and 0 for a stream without events.
  std::vector<StreamVersion> versions = {};
  /// The append id was committed before; this is the result of that append.
  bool repeated = false;
};

// --- reading

/// Selects events of one stream. All bounds are inclusive.
struct StreamQuery {
  StreamVersion from{1};
  StreamVersion to = StreamVersion::max();
  /// Only events that the store had when this sequence was its last.
  GlobalSequence up_to = GlobalSequence::max();
  /// Also reads the tags of the events, which costs a look-up for each.
  bool with_tags = false;
  Direction direction = Direction::forward;
  std::int64_t limit = no_limit;
};

/// Selects events of the whole store. All bounds are inclusive; an empty list doesn't filter.
struct AllQuery {
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};
  /// By name: "order-7".
  std::vector<std::string> streams = {};
  std::vector<std::string> categories = {};
  std::vector<std::string> event_types = {};
  /// Also reads the tags of the events, which costs a look-up for each.
  bool with_tags = false;
  Direction direction = Direction::forward;
  std::int64_t limit = no_limit;
};

/// Supplies an EventRange page by page. So memory use stays constant, and no lock or transaction is
/// held while the caller works.
class STELA_FRAMEWORK_EXPORT EventCursor {
 public:
  virtual ~EventCursor() = default;
  /// The next events, valid until the next call. Empty at the end.
  virtual std::span<const StoredEvent> next_page() = 0;
};

/// Events that are read on demand: `for (const StoredEvent& event : range)`. An event is valid
/// until the iterator moves on. A range must not outlive its store. A range that was read through a
/// Transaction must not outlive the work of that transaction. Threads: one at a time.
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

  /// Call it once.
  Iterator begin() { return Iterator{*this}; }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// For callers that work page by page.
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

/// The encoded state of an aggregate at a version of its stream.
struct StoredSnapshot {
  StreamVersion version = {};
  /// The sequence of the event with that version.
  GlobalSequence sequence = {};
  /// The version of the state's own layout.
  int state_version = 1;
  std::string payload = {};
};

// --- the ports

/// Decides whether an event is published. Asked when the event is recorded.
using PublicationPolicy = std::function<bool(const EventType&, const StreamId&)>;

/// The settings that all writers of a store share, and the store's identity.
struct Conventions {
  Codec codec = Codec::json;
  /// Empty: each event type decides (`stela::should_publish`).
  PublicationPolicy publishes = {};
  LogSink* log = &no_log();
  MetricSink* metrics = &no_metrics();
  /// Null if the store has no identity. Objects of other stores aren't refused then.
  std::shared_ptr<const StoreIdentity> store = {};
  /// The clock of recorded times. It lives as long as the store.
  const Clock* clock = &system_clock();
  /// The keys of personal fields. Null if the store was opened without keys: personal fields stay
  /// sealed, and none can be recorded. They live as long as the store.
  Keyring* keys = nullptr;

  /// How payloads are read.
  Reading reading() const noexcept { return {codec, keys}; }
};

/// The questions of a decision before it decides.
struct DecisionQuestion {
  /// Events of one view.
  struct Part {
    const QueryItem* item;
    /// Only the newest one.
    bool last_only = false;
    bool with_tags = false;
  };

  /// The append id to look for. Empty: none.
  std::string_view append_id = {};
  std::span<const TagNeed> needs = {};
  std::span<const Part> parts = {};
  /// Events after it aren't read. The maximum: up to the standpoint.
  GlobalSequence up_to = GlobalSequence::max();
};

/// A store's answer to a DecisionQuestion.
struct DecisionAnswer {
  /// The part's first events, or only the newest one.
  struct Part {
    std::size_t events = 0;
    /// False: there may be more, after the last of these.
    bool is_complete = false;
  };

  /// The result of the append with the question's id. The other members are empty then.
  std::optional<AppendResult> appended = {};
  Standpoint standpoint = {};
  /// One for each part of the question, in order; or none if no event was read.
  std::vector<Part> parts = {};
  /// The events of the first part, then those of the second…
  std::optional<EventRange> events = {};
};

/// The interface through which repositories read and append: a store, or one of its open
/// transactions.
class STELA_FRAMEWORK_EXPORT EventLog {
 public:
  virtual ~EventLog() = default;

  virtual const Conventions& conventions() const noexcept = 0;

  /// Appends everything or nothing. ConcurrencyConflict if a stream isn't at its expected version;
  /// ConditionConflict if the request's condition doesn't hold; StoreBusy, StoreFull, StoreFailed
  /// and CommitInDoubt, as their names say.
  virtual AppendResult append(const AppendRequest& request) = 0;

  virtual EventRange read_stream(const StreamId& stream, const StreamQuery& query = {}) = 0;

  /// The events that match the query, each once, in the order of the store, with their tags.
  /// UsageError if the query has no items, or more than 10,000.
  virtual EventRange read(const Query& query, const QueryRange& range = {}) = 0;

  /// The standpoint of a decision that reads now. TagsMissing if events in history lack tags that
  /// `needs` asks for.
  virtual Standpoint standpoint(std::span<const TagNeed> needs = {}) = 0;

  /// The result of the append with this id, if it was committed before: its sequences, without
  /// versions.
  virtual std::optional<AppendResult> find_append(std::string_view append_id) = 0;

  /// Answers a decision's questions in as few steps as the store can. The default looks up the
  /// append id, then the standpoint, and leaves events to `read`.
  virtual DecisionAnswer answer(const DecisionQuestion& question);

  /// The newest snapshot of the stream within both bounds, if there is one.
  virtual std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                                      GlobalSequence up_to) = 0;
  /// Stores the snapshot unless there is a newer one. Never part of an append's transaction.
  virtual void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) = 0;
  virtual void drop_snapshot(const StreamId& stream) = 0;

  /// Runs `work` in one write transaction, on this thread. Its appends and its
  /// other changes through the transaction commit together when it returns. If it throws, nothing
  /// is stored. On an open transaction it is a savepoint: if it throws, only `work` is undone, and
  /// a caller that catches the exception may continue. What it did commits with the transaction.
  virtual void transact(FunctionRef<void(Transaction&)> work) = 0;

  /// The outcome that the event with this sequence depends on, as read through this log: that of
  /// the open transaction or savepoint that appended it. Null if the event is committed.
  virtual std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) = 0;

  /// The object to keep for longer than a call. It is this object, or a fixed one if this is a
  /// handle that can be moved. It lives as long as the store or transaction behind the handle.
  virtual EventLog& anchor() noexcept { return *this; }
};

/// An open write transaction. Reads through it see its own writes. Snapshots that are saved through
/// it are written after the commit, when listeners have been called. If that fails, it is only
/// logged. Threads: belongs to the thread on which `transact` calls the work.
class STELA_FRAMEWORK_EXPORT Transaction : public EventLog {};

/// Takes part in every append. Once it is attached, no process may append without it.
class STELA_FRAMEWORK_EXPORT Participant {
 public:
  virtual ~Participant() = default;

  /// Stored in the database. Appends without a participant of this name are refused.
  virtual std::string_view name() const noexcept = 0;
  /// Other data that must be the same in every process: a partitioner's name, a projector's
  /// version.
  virtual std::string_view detail() const noexcept = 0;
  /// Whether it can take part if the database has recorded this detail. A participant that knows
  /// several versions of itself follows the recorded one.
  virtual bool accepts(std::string_view recorded) const noexcept { return recorded == detail(); }
  /// Its cached knowledge of the database is no longer valid: a transaction was rolled back, or
  /// another process wrote.
  virtual void forget() noexcept {}
};

/// User code inside the transaction of every append, for example an inline projector. It sees the
/// events with their sequences. It runs on the appending thread, and its append shares the
/// transaction with no other append.
class STELA_FRAMEWORK_EXPORT TransactionParticipant : public Participant {
 public:
  /// An exception rolls the append back and reaches the caller of the append.
  virtual void on_append(Transaction& transaction, std::span<const StoredEvent> events) = 0;
};

/// A commit that has just happened. `events` may be read from any thread until the notice returns.
struct CommitNotice {
  std::span<const StoredEvent> events = {};
};

/// Keeps a listener connected while it lives. Ending it waits for calls of the listener on other
/// threads, so don't hold a lock that they wait for. After that the listener isn't called any more.
/// It may end inside a call of the listener, which then runs to its end. Threads: one at a time.
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

/// Stores events. Threads: any number at once.
class STELA_FRAMEWORK_EXPORT EventStore : public EventLog {
 public:
  /// Events of the whole store, up to its last event at the time of the call.
  virtual EventRange read_all(const AllQuery& query = {}) = 0;
  /// The events with these sequences, in ascending order, with their tags. Missing ones are
  /// skipped.
  virtual EventRange read_at(std::span<const GlobalSequence> sequences) = 0;
  /// 0 if the store is empty.
  virtual GlobalSequence last_sequence() = 0;
  /// Which event types carry which tags.
  virtual TagCatalogue tag_catalogue() = 0;

  /// From now on `participant` takes part in every append of this process, and the database
  /// requires it of every process. It must outlive the store or be detached. UsageError if one with
  /// its name is attached already.
  virtual void attach(TransactionParticipant& participant) = 0;
  /// This process no longer appends with it; the database still requires it. Waits for the open
  /// transaction of another thread, without a limit. So a transaction must not wait for a thread
  /// that detaches, or that destroys an Outbox or Projections.
  virtual void detach(TransactionParticipant& participant) = 0;
  /// The database no longer requires a participant with this name.
  virtual void forget_participant(std::string_view name) = 0;

  /// Calls `listener` after each commit of events through this store, on the committing thread. Its
  /// exceptions go to the log; the other listeners are still called.
  virtual Subscription on_commit(std::function<void(const CommitNotice&)> listener) = 0;

  EventStore& anchor() noexcept override { return *this; }
};

/// The listeners of a store: for classes that implement EventStore. Threads: any number at once.
class STELA_FRAMEWORK_EXPORT CommitListeners {
 public:
  /// Exceptions of listeners go to the log of `conventions`, which must outlive this object.
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
