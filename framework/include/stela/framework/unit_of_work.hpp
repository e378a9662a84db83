// Several aggregates, events without an aggregate, and the caller's own SQL in one transaction.
#pragma once

#include <stela/framework/detail/event_encoder.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/repository.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela {

class Decision;
class UnitOfWork;

namespace detail {

class ViewReader;
/// Reads views at the position of the unit, and makes its commit depend on them. False if the
/// unit's append id was found: then there is nothing to decide.
STELA_FRAMEWORK_EXPORT bool read_views(UnitOfWork& unit, std::span<ViewReader* const> readers);
struct UnitAccess;

}  // namespace detail

/// Collects changes and commits them together, in the order in which they were recorded. Loading
/// the same aggregate twice gives the same object. The unit keeps all aggregates until it is
/// destroyed, also those of earlier commits. So in a loop, make a new unit for each round.
///
///     UnitOfWork unit{store};
///     Order& order = unit.load<Order>(order_id);
///     Stock& stock = unit.load<Stock>(sku);
///     stock.reserve(order.quantity());
///     order.confirm();
///     unit.commit();
///
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT UnitOfWork {
 public:
  /// `log` is a store, or an open transaction if the caller controls it. Must outlive the unit.
  explicit UnitOfWork(EventLog& log) noexcept;
  /// Its decisions and commits have this context instead of the calling thread's: for coroutines.
  /// UsageError at the commit if it can't be stored.
  UnitOfWork(EventLog& log, Context context);
  /// Drops changes that weren't committed.
  ~UnitOfWork();
  UnitOfWork(const UnitOfWork&) = delete;
  UnitOfWork& operator=(const UnitOfWork&) = delete;

  /// The aggregate. The unit owns it, and it is valid as long as the unit. AggregateNotFound if it
  /// has no events; UsageError if this unit appended to its stream.
  template <Aggregate A>
  A& load(const Id<A>& id) {
    A* const found = find(id);
    if (found == nullptr) detail::throw_not_found(id.stream());
    return *found;
  }

  /// As `load`, but null if the aggregate has no events.
  template <Aggregate A>
  A* find(const Id<A>& id);

  /// Takes over an aggregate, usually a new one. UsageError if the unit has its stream already, or
  /// is being committed, or if the aggregate was loaded from another store or saved to another one.
  template <Aggregate A>
  A& add(A aggregate);

  /// Makes the commit check the version of this aggregate, even if the unit only read it: if its
  /// stream has changed since, ConcurrencyConflict, and nothing is stored. Aggregates that the unit
  /// changes are always checked. UsageError unless this very object belongs to the unit, because a
  /// copy may have another version.
  template <Aggregate A>
  void require_unchanged(const A& aggregate) {
    check_is_not_committing();
    if (find_tracked<A>(aggregate.stream()) != &aggregate) {
      detail::refuse_saving(aggregate.stream(),
                            "isn't an aggregate of this unit of work; load it "
                            "there");
    }
    find_any(aggregate.stream())->is_required = true;
  }

  /// Appends an event to a stream without an aggregate. Later events for the same stream must give
  /// the same expected version as the first: the version before the unit, or `any()`. UsageError
  /// for another version, and for the stream of an aggregate of this unit.
  template <Event E>
  void append(const StreamId& stream, ExpectedVersion expected, const E& event) {
    static_assert(detail::check_event<E>());
    check_is_not_committing();
    loose_stream(stream, expected).add(event);
    note_loose(stream);
  }

  /// Runs `work` inside the transaction, after the events: the place for the caller's own SQL.
  /// `work` can't record anything or add anything to the unit: that is a UsageError, which `commit`
  /// throws, so that nothing is stored.
  void in_transaction(std::function<void(Transaction&)> work);

  /// Commits everything, or throws and commits nothing. On an open transaction, a failed unit
  /// leaves nothing in it. After the commit the unit is like a new one, and loads everything again.
  /// Aggregates that it loaded before can be read, as they were saved, until the unit is destroyed;
  /// `record` is a UsageError. After a CommitInDoubt, the aggregates that it would have changed
  /// can't be used.
  ///
  /// Code that the commit calls (the unit's work, participants, listeners) can load with the unit,
  /// to read. UsageError if it commits the unit, adds something to it or records on its aggregates.
  /// UsageError also if a handler commits the unit that its reaction or process was given.
  AppendResult commit(const SaveOptions& options = {});

 private:
  friend class Decision;
  friend struct detail::UnitAccess;

  struct Tracked {
    explicit Tracked(const std::type_info& the_type) noexcept : type{the_type} {}
    virtual ~Tracked() = default;
    virtual const StreamId& stream() const noexcept = 0;
    virtual std::size_t recorded() const = 0;
    /// The place of each change in the recording order of this process.
    virtual std::span<const std::uint64_t> order() const = 0;
    /// Encodes its changes before it is saved.
    virtual void encode_pending(detail::EventEncoder& encoder) const = 0;
    virtual void encode(EventLog& log, detail::EventEncoder& encoder) = 0;
    /// Notes that its changes were appended, which led to version `after`.
    virtual void note_commit(EventLog& log, const StreamAppend& append,
                             const detail::AppendedStream& after) noexcept = 0;
    virtual void set_in_doubt(EventLog& log) noexcept = 0;
    /// Refuses events while the unit commits.
    virtual void begin_commit() noexcept = 0;
    /// Accepts events again, because the commit failed.
    virtual void reopen() noexcept = 0;
    /// Ends its use by the unit.
    virtual void close() noexcept = 0;

    const std::type_info& type;
    detail::BegunSave save = {};
    /// How many of its changes the commit appends.
    std::size_t encoded = 0;
    /// The commit checks its version even if it appends nothing.
    bool is_required = false;
  };

  template <class A>
  struct TrackedAggregate final : Tracked {
    explicit TrackedAggregate(A the_aggregate)
        : Tracked{typeid(A)}, aggregate{std::move(the_aggregate)} {}

    const StreamId& stream() const noexcept override { return aggregate.stream(); }
    std::size_t recorded() const override { return aggregate.changes().size(); }
    std::span<const std::uint64_t> order() const override {
      return detail::AggregateAccess::order_of_changes(aggregate);
    }
    void encode_pending(detail::EventEncoder& encoder) const override {
      detail::encode_changes(encoder, aggregate.changes());
    }
    void encode(EventLog& log, detail::EventEncoder& encoder) override;
    void note_commit(EventLog& log, const StreamAppend& append,
                     const detail::AppendedStream& after) noexcept override;
    void set_in_doubt(EventLog& log) noexcept override {
      detail::set_in_doubt(log, aggregate, save);
    }
    void begin_commit() noexcept override { detail::AggregateAccess::begin_commit(aggregate); }
    void reopen() noexcept override { detail::AggregateAccess::reopen(aggregate); }
    void close() noexcept override {
      detail::AggregateAccess::close(aggregate, detail::Closed::committed);
    }

    A aggregate;
  };

  struct LooseStream;
  /// The unit's aggregate or loose events of a stream.
  struct Entry {
    Tracked* tracked = nullptr;
    LooseStream* loose = nullptr;
  };

  template <class A>
  A* find_tracked(const StreamId& stream) {
    Tracked* const tracked = find_any(stream);
    if (tracked == nullptr) return nullptr;
    if (tracked->type != typeid(A)) {
      detail::refuse_saving(stream, "is in this unit of work as an aggregate of another type");
    }
    return &static_cast<TrackedAggregate<A>*>(tracked)->aggregate;
  }

  template <class A>
  A& track(A aggregate);

  /// As `find`, for the stream as of the unit's position. The commit checks its version, or that it
  /// still has no events.
  template <Aggregate A>
  A* find_at_position(const Id<A>& id);
  /// The position that all decisions of the unit share.
  const Standpoint& position();
  /// Asks the log, also for the position if the unit has none yet.
  DecisionAnswer ask(std::span<const TagNeed> needs, std::span<const DecisionQuestion::Part> parts);
  void stand_at(const Standpoint& now);
  void depend_on(QueryItem item);
  void depend_on(const std::shared_ptr<const TransactionOutcome>& outcome);
  std::size_t count_pending() const;
  /// Called when a decision threw after it had recorded something.
  void give_up() noexcept;

  class Committing;
  class Batch;
  AppendResult commit_in_scope(std::string_view append_id);
  void check_is_not_committing() const;
  AppendResult append_and_work(const AppendRequest& request);
  void check_nothing_was_recorded_since() const;
  /// Makes the unit like a new one, because everything was committed.
  void begin_anew() noexcept;
  std::span<const std::unique_ptr<Tracked>> open() const noexcept {
    return std::span{tracked_}.subspan(committed_);
  }
  Tracked* find_any(const StreamId& stream) const noexcept;
  detail::EventEncoder& loose_stream(const StreamId& stream, ExpectedVersion expected);
  /// Notes that the stream's encoder got another event.
  void note_loose(const StreamId& stream);

  EventLog& log_;
  std::optional<Context> context_;
  std::vector<std::unique_ptr<Tracked>> tracked_;
  /// How many of the aggregates were committed before and are only kept.
  std::size_t committed_ = 0;
  std::vector<std::unique_ptr<LooseStream>> loose_;
  std::unordered_map<StreamId, Entry> by_stream_;
  std::vector<std::function<void(Transaction&)>> work_;
  std::optional<Standpoint> position_;
  /// The append id that is looked up together with the position.
  std::string_view decides_under_;
  std::optional<AppendResult> decided_before_;
  /// The reads of its decisions.
  AppendCondition condition_;
  bool is_committing_ = false;
  /// Why it can't be committed any more. Null if it can.
  const char* given_up_ = nullptr;
  /// A handler has it, and the caller of that handler commits it.
  bool is_lent_ = false;
};

// Defined outside of the class, because functions inside are inline and would be compiled at each
// call.

template <Aggregate A>
A* UnitOfWork::find(const Id<A>& id) {
  const StreamId stream = id.stream();
  if (A* const tracked = find_tracked<A>(stream)) return tracked;
  auto aggregate = detail::load_aggregate<A>(log_, stream, {});
  return aggregate ? &track(std::move(*aggregate)) : nullptr;
}

template <Aggregate A>
A* UnitOfWork::find_at_position(const Id<A>& id) {
  const StreamId stream = id.stream();
  if (find_tracked<A>(stream) == nullptr) {
    auto aggregate =
        detail::load_aggregate<A>(log_, stream, at_sequence(position().head), /*closed=*/false);
    if (!aggregate) {
      depend_on({.tags = {stream}});
      return nullptr;
    }
    track(std::move(*aggregate));
  }
  find_any(stream)->is_required = true;
  return find_tracked<A>(stream);
}

template <Aggregate A>
A& UnitOfWork::add(A aggregate) {
  static_assert(detail::check_aggregate<A>());
  check_is_not_committing();
  if (aggregate.stream().category() != A::category) {
    detail::refuse_saving(aggregate.stream(), "isn't of this aggregate's category");
  }
  if (find_any(aggregate.stream()) != nullptr) {
    detail::refuse_saving(aggregate.stream(), "is in this unit of work already");
  }
  detail::AggregateAccess::check_is_of(log_.conventions().store, aggregate);
  return track(std::move(aggregate));
}

template <class A>
void UnitOfWork::TrackedAggregate<A>::encode(EventLog& log, detail::EventEncoder& encoder) {
  const auto unsaved = detail::AggregateAccess::begin_save(aggregate, false);
  if (!unsaved.changes.empty() || is_required) {
    detail::check_is_not_open_elsewhere(log, aggregate);
  }
  // The unit's variable may have been assigned to since the aggregate was added.
  detail::AggregateAccess::check_is_of(log.conventions().store, aggregate);
  save = {unsaved.version, unsaved.identity};
  detail::encode_changes(encoder, unsaved.changes);
}

template <class A>
void UnitOfWork::TrackedAggregate<A>::note_commit(EventLog& log, const StreamAppend& append,
                                                  const detail::AppendedStream& after) noexcept {
  try {
    detail::note_save(log, aggregate, append, save, after);
    if (!aggregate.changes().empty()) {
      detail::log_lost_changes(log.conventions(), aggregate.stream());
    }
  } catch (const std::exception&) {
    // A throw means that the aggregate can't be used.
  }
}

template <class A>
A& UnitOfWork::track(A aggregate) {
  auto tracked = std::make_unique<TrackedAggregate<A>>(std::move(aggregate));
  A& kept = tracked->aggregate;
  Entry& entry = by_stream_[tracked->stream()];
  if (entry.loose != nullptr) {
    detail::refuse_saving(tracked->stream(),
                          "has events in this unit of work that its aggregate doesn't know; load "
                          "the aggregate before, and record on it");
  }
  if (is_committing_) tracked->begin_commit();
  tracked_.push_back(std::move(tracked));
  entry.tracked = tracked_.back().get();
  return kept;
}

}  // namespace stela
