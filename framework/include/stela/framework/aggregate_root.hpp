// Aggregates: objects that record events, and whose state follows from them.
#pragma once

#include <stela/framework/context.hpp>
#include <stela/framework/detail/aggregate_standing.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/snapshot_policy.hpp>
#include <stela/framework/stream_id.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela {
namespace detail {

struct AggregateAccess;

/// No state handles this event. A state that accepts it has a catch-all `apply`.
struct ForeignEvent {};

template <class State, class E>
consteval bool check_apply() {
  static_assert(
      requires(State state, const E& event) { state.apply(event); },
      "stela: the state can't apply one of its events; give it `void apply(const E&)` "
      "for the event that the lines around this one name");
  return true;
}

template <class State, class Events>
consteval bool check_state() {
  static_assert(std::is_default_constructible_v<State>,
                "stela: a state must be default constructible: it is what it is before any event");
  static_assert(
      !requires(State state, const ForeignEvent& event) { state.apply(event); },
      "stela: the state has a catch-all `apply`, which would swallow events "
      "without a handler; write one `apply` for each event");
  Events::for_each([]<class E>(std::type_identity<E>) { static_assert(check_apply<State, E>()); });
  return true;
}

/// Why an aggregate accepts no more events.
enum class Closed : std::uint8_t {
  no,
  historical,
  /// Its unit of work is committing.
  committing,
  /// Its unit of work, which owns it, has committed.
  committed,
};

/// Grows with each event that is recorded in this process, so that events of several aggregates can
/// be appended in the order in which they were recorded.
STELA_FRAMEWORK_EXPORT std::uint64_t next_in_order() noexcept;

/// With `Closed::no`, the reason is a replay.
[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_recording(const StreamId& stream, Closed closed);

}  // namespace detail

/// The base of an aggregate: `class Order : public stela::AggregateRoot<OrderState, OrderEvents>`,
/// with `static constexpr std::string_view category = "order";` and `using
/// AggregateRoot::AggregateRoot;`. Its methods change it only through `record`.
///
/// An aggregate that was saved or loaded inside a transaction follows that transaction. While the
/// transaction is open, saved events count as stored. After the commit they are stored. After a
/// rollback they are unsaved again, and the version is the one from before; an aggregate that was
/// loaded inside can't be used any more. The rollback of a savepoint (`transact` on a transaction)
/// has the same effects. If an aggregate can't be used, every call is a UsageError, and it must be
/// loaded again. The same applies after a commit in doubt, after a save under an append id that had
/// stored other events, and after `apply` threw out of `record`.
///
/// Threads: one at a time.
template <class State, class Events>
class AggregateRoot {
 public:
  using StateType = State;
  using EventsType = Events;
  using Change = typename Events::Variant;

  /// A new aggregate without events. `load` gives one with its history.
  explicit AggregateRoot(StreamId stream) : stream_{std::move(stream)} {
    static_assert(detail::check_state<State, Events>());
  }

  /// The same, for the aggregate's own id.
  template <class A>
  explicit AggregateRoot(const Id<A>& id) : AggregateRoot{id.stream()} {
    static_assert(std::derived_from<A, AggregateRoot>,
                  "stela: an aggregate can't be made with the id of another aggregate; its id is "
                  "an Id of its own class");
  }

  const StreamId& stream() const noexcept { return stream_; }
  /// The stored version. Recorded events that aren't saved yet don't count.
  StreamVersion version() const { return saved().version; }
  const State& state() const {
    if (!standing_.is_settled()) (void)saved();
    return state_;
  }
  /// The recorded events that aren't saved yet. Valid until something is recorded or saved.
  std::span<const Change> changes() const {
    return std::span<const Change>{changes_}.subspan(saved().changes);
  }
  /// True if it was loaded as of an earlier time. It can be read, but not changed.
  bool is_historical() const noexcept { return closed_ == detail::Closed::historical; }

 protected:
  /// Applies the event to the state, and keeps it for `save`. UsageError during a replay, on a
  /// historical aggregate, and on one whose unit of work is committing or has committed. If `apply`
  /// throws, `record` throws the same, and the aggregate can't be used any more, because its state
  /// may be half changed.
  template <class E>
  void record(E event) {
    static_assert(Events::template contains<E>,
                  "stela: the aggregate records an event that isn't in its event set; add it");
    if (closed_ != detail::Closed::no || is_replaying()) {
      detail::refuse_recording(stream_, closed_);
    }
    settle();
    // Stored first: an event that the state has seen must not be lost when memory runs out.
    order_.push_back(detail::next_in_order());
    try {
      changes_.emplace_back(std::in_place_type<E>, std::move(event));
    } catch (...) {
      order_.pop_back();
      throw;
    }
    try {
      state_.apply(std::as_const(std::get<E>(changes_.back())));
    } catch (...) {
      standing_.set_trouble(detail::Discrepancy::half_applied);
      throw;
    }
  }

 private:
  friend struct detail::AggregateAccess;

  detail::Saved saved() const {
    if (standing_.is_settled()) return {.version = version_};
    return standing_.saved(stream_, version_);
  }

  /// Drops the changes that are stored for good.
  void settle() {
    if (standing_.is_settled()) return;
    const detail::Settled settled = standing_.settled(stream_, version_);
    drop_changes(settled.committed.changes);
    version_ = settled.committed.version;
    standing_.drop_ended(settled);
  }

  /// Drops the first `count` changes.
  void drop_changes(std::size_t count) {
    if (count == 0) return;
    order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count));
    if (count == changes_.size()) return changes_.clear();
    const auto unsaved = changes_.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Change> rest{std::make_move_iterator(unsaved),
                             std::make_move_iterator(changes_.end())};
    changes_.swap(rest);
  }

  StreamId stream_;
  /// The version of everything that is stored for good.
  StreamVersion version_;
  State state_;
  /// Recorded, and not yet stored for good.
  std::vector<Change> changes_;
  /// Each change's place in the recording order of this process.
  std::vector<std::uint64_t> order_;
  detail::AggregateStanding standing_;
  detail::SaveIdentity saving_;
  detail::Closed closed_ = detail::Closed::no;
};

/// A class that can be loaded and saved.
template <class A>
concept Aggregate = requires {
  typename A::StateType;
  typename A::EventsType;
  { A::category } -> std::convertible_to<std::string_view>;
}
&&std::derived_from<A, AggregateRoot<typename A::StateType, typename A::EventsType>>&&
    std::constructible_from<A, StreamId>;

/// The id of an aggregate, as a type of its own.
template <Aggregate A>
Id<A> id_of(const A& aggregate) {
  return Id<A>::of(aggregate.stream());
}

namespace detail {

template <class A>
consteval bool check_aggregate() {
  static_assert(
      requires {
        { A::category } -> std::convertible_to<std::string_view>;
      },
      "stela: an aggregate needs `static constexpr std::string_view category`");
  static_assert(is_valid_category(A::category),
                "stela: a category is 1 to 64 characters of a-z, 0-9 and '_', the first a letter");
  static_assert(std::constructible_from<A, StreamId>,
                "stela: an aggregate must be constructible from its stream id; write `using "
                "AggregateRoot::AggregateRoot;`");
  return true;
}

/// A save's events, the version that it expects, and the identity under which it reports back.
template <class A>
struct Unsaved {
  std::span<const typename A::Change> changes;
  StreamVersion version;
  std::uint64_t identity;
};

/// Gives repositories and the test kit access to an aggregate's private members.
struct AggregateAccess {
  template <class A, class E>
  static void apply(A& aggregate, const E& event, StreamVersion version) {
    aggregate.state_.apply(event);
    aggregate.version_ = version;
  }
  template <class A>
  static void restore(A& aggregate, typename A::StateType state, StreamVersion version) {
    aggregate.state_ = std::move(state);
    aggregate.version_ = version;
  }
  /// UsageError if it has events in another store, or may have some there.
  template <class A>
  static void check_is_of(const SharedIdentity& here, const A& aggregate) {
    const AggregateStanding& standing = aggregate.standing_;
    if (standing.is_in_doubt() || aggregate.version().value() > 0) {
      standing.check_is_of(here, aggregate.stream_);
    }
  }
  template <class A>
  static void set_store(A& aggregate, const SharedIdentity& store) noexcept {
    aggregate.standing_.set_store(store);
  }
  /// Notes that it contains events that depend on `outcome`, unless that is null.
  template <class A>
  static void mark_loaded(A& aggregate, std::shared_ptr<const TransactionOutcome> outcome) {
    if (outcome) aggregate.standing_.mark_loaded(std::move(outcome), aggregate.version_);
  }
  /// UsageError unless it may be saved. After a commit in doubt it may be saved under an append id:
  /// the id, or the stream's version, shows whether the earlier save was stored.
  template <class A>
  static Unsaved<A> begin_save(A& aggregate, bool has_append_id) {
    if (has_append_id && aggregate.standing_.is_in_doubt()) {
      return {aggregate.changes_, aggregate.version_, aggregate.saving_.begin()};
    }
    aggregate.settle();
    return {aggregate.changes(), aggregate.version(), aggregate.saving_.begin()};
  }
  template <class A, class E>
  static void record(A& aggregate, E event) {
    aggregate.record(std::move(event));
  }
  /// When each of the unsaved changes was recorded.
  template <class A>
  static std::span<const std::uint64_t> order_of_changes(const A& aggregate) {
    return std::span<const std::uint64_t>{aggregate.order_}.subspan(aggregate.saved().changes);
  }
  /// False if the aggregate isn't the one that the save began with: it was assigned to meanwhile,
  /// or another save of it has ended.
  template <class A>
  static bool is_being_saved(const A& aggregate, std::uint64_t identity) noexcept {
    return aggregate.saving_.is(identity);
  }
  /// True if it is settled, or if it was loaded and saved only in the transaction of `outcome`.
  template <class A>
  static bool depends_on_no_other(const A& aggregate, const TransactionOutcome* outcome) noexcept {
    return aggregate.standing_.depends_on_no_other(outcome);
  }
  /// The first `count` unsaved changes are now saved, depending on `outcome` (null: for good). A
  /// listener may have recorded more meanwhile.
  template <class A>
  static void mark_saved(A& aggregate, std::size_t count, StreamVersion version,
                         std::shared_ptr<const TransactionOutcome> outcome) {
    aggregate.saving_.end();
    aggregate.standing_.set_trouble(Discrepancy::none);
    if (outcome || !aggregate.standing_.is_settled()) {
      return aggregate.standing_.mark_saved(std::move(outcome), count, version);
    }
    aggregate.drop_changes(count);
    aggregate.version_ = version;
  }
  template <class A>
  static void set_trouble(A& aggregate, Discrepancy trouble) noexcept {
    aggregate.standing_.set_trouble(trouble);
  }
  template <class A>
  static void close(A& aggregate, Closed why) noexcept {
    aggregate.closed_ = why;
  }
  /// Accepts no more events until its unit has committed or reopens it.
  template <class A>
  static void begin_commit(A& aggregate) noexcept {
    if (aggregate.closed_ == Closed::no) aggregate.closed_ = Closed::committing;
  }
  template <class A>
  static void reopen(A& aggregate) noexcept {
    if (aggregate.closed_ == Closed::committing) aggregate.closed_ = Closed::no;
  }
};

}  // namespace detail
}  // namespace stela
