// Decisions: rules that span streams, checked when their events are appended.
#pragma once

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/retry.hpp>
#include <stela/framework/unit_of_work.hpp>
#include <stela/framework/view.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela {
namespace detail {

/// Gives decisions, and callers of handlers, access to a unit of work.
struct STELA_FRAMEWORK_EXPORT UnitAccess {
  static EventLog& log(UnitOfWork& unit) noexcept { return unit.log_; }
  static const Standpoint& position(UnitOfWork& unit) { return unit.position(); }
  static DecisionAnswer ask(UnitOfWork& unit, std::span<const TagNeed> needs,
                            std::span<const DecisionQuestion::Part> parts) {
    return unit.ask(needs, parts);
  }
  /// `append_id` must outlive the unit's questions to the log.
  static void decide_under(UnitOfWork& unit, std::string_view append_id) noexcept {
    unit.decides_under_ = append_id;
  }
  /// The result of the earlier append with that id, if there was one.
  static const std::optional<AppendResult>& decided_before(const UnitOfWork& unit) noexcept {
    return unit.decided_before_;
  }
  static void depend_on(UnitOfWork& unit, QueryItem item) { unit.depend_on(std::move(item)); }
  static const Context* context(const UnitOfWork& unit) noexcept {
    return unit.context_ ? &*unit.context_ : nullptr;
  }
  static std::size_t count_pending(const UnitOfWork& unit) { return unit.count_pending(); }
  static void give_up(UnitOfWork& unit) noexcept { unit.give_up(); }
  /// A lent unit can't be committed.
  static void lend(UnitOfWork& unit, bool is_lent) noexcept { unit.is_lent_ = is_lent; }
  /// The events that the unit would append, in the order in which they were recorded. Their
  /// sequences and versions are 0.
  static void for_each_pending(UnitOfWork& unit, FunctionRef<void(const StoredEvent&)> f);
};

template <class E>
consteval bool check_recorded() {
  static_assert(check_event<E>());
  static_assert(Tagged<E>,
                "stela: a decision records an event to the stream of its first tag; give the event "
                "`static constexpr auto tags = stela::tags(…);`");
  if constexpr (Tagged<E>) {
    using First = TagValueOf<E, FirstTag<E>>;
    static_assert(First::is_one,
                  "stela: the first tag of an event names its stream, so it must be one id");
    if constexpr (requires { typename First::Named::EventsType; }) {
      static_assert(First::Named::EventsType::template contains<E>,
                    "stela: the first tag of the event names an aggregate that doesn't have the "
                    "event in its event set, and couldn't be loaded any more; add it there");
    }
  }
  return true;
}

}  // namespace detail

/// The interface of a running decision. Its reads are answered at one position, and its events
/// are appended only if nothing that it read has changed by then. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT Decision {
 public:
  explicit Decision(UnitOfWork& unit) noexcept : unit_{unit} {}
  Decision(const Decision&) = delete;
  Decision& operator=(const Decision&) = delete;

  /// Records an event to the stream that its first tag names. If the unit has the aggregate of that
  /// stream, the event is applied to it. UsageError if a tag isn't valid.
  template <Event E>
  void record(E event);

  /// Reads another view, which also sees the events recorded so far.
  template <class V>
  V read(V view);

  /// The aggregate as it was at the position. The append fails if the aggregate has changed since,
  /// even if the decision records nothing on it. AggregateNotFound if it had no events.
  template <Aggregate A>
  A& load(const Id<A>& id) {
    A* const found = find(id);
    if (found == nullptr) detail::throw_not_found(id.stream());
    return *found;
  }
  /// As `load`, but null if the aggregate had no events. The append fails if it has events by then.
  template <Aggregate A>
  A* find(const Id<A>& id) {
    return unit_.find_at_position(id);
  }

  /// The store's last sequence when the decision read.
  GlobalSequence position() { return unit_.position().head; }

  /// The time of the decision, from the store's clock, which also stamps its events. Every call
  /// returns the same time. Another attempt has its own.
  Timestamp now() {
    if (!now_) now_ = unit_.log_.conventions().clock->now();
    return *now_;
  }

 private:
  UnitOfWork& unit_;
  std::optional<Timestamp> now_;
};

struct DecideOptions {
  /// An id of the caller, at most 128 bytes. If a decision with this id was committed before, its
  /// result is returned, and the decision doesn't run.
  std::string_view append_id = {};
  /// The context in which it decides and appends, instead of that of this thread: for coroutines.
  /// UsageError if it can't be stored.
  const Context* context = nullptr;
  /// How often to decide again when another writer was faster. The last attempt holds the write
  /// lock from its first read on, so no other writer can overtake it.
  RetryOptions retry = {.max_attempts = 5,
                        .retry_backoff = std::chrono::milliseconds{1},
                        .retry_backoff_max = std::chrono::milliseconds{16}};
};

namespace detail {

/// Decides once, without retries, in a unit that the caller commits.
STELA_FRAMEWORK_EXPORT void decide_within(UnitOfWork& unit, FunctionRef<void()> decide);
/// Decides, and appends what was recorded.
STELA_FRAMEWORK_EXPORT AppendResult decide(EventLog& log, const DecideOptions& options,
                                           FunctionRef<void(UnitOfWork&)> run);

template <class V>
struct ViewSource {
  const V& view;
  Reading reading;
};

/// A view, or a list of views, while it is read.
template <class V>
struct ViewSlot {
  explicit ViewSlot(const ViewSource<V>& source) : reader{source.view, source.reading} {}
  void collect(std::vector<ViewReader*>& readers) { readers.push_back(&reader); }
  const V& value() { return reader.view(); }

  TypedViewReader<V> reader;
};
template <class V>
struct ViewSlot<std::vector<V>> {
  explicit ViewSlot(const ViewSource<std::vector<V>>& source) {
    for (const V& view : source.view) {
      readers.push_back(std::make_unique<TypedViewReader<V>>(view, source.reading));
    }
  }
  void collect(std::vector<ViewReader*>& all) {
    for (const auto& reader : readers) all.push_back(reader.get());
  }
  const std::vector<V>& value() {
    for (const auto& reader : readers) values.push_back(reader->release());
    return values;
  }

  std::vector<std::unique_ptr<TypedViewReader<V>>> readers;
  std::vector<V> values;
};

/// Reads the views and calls `f(decision, views…)`.
template <class F, class... Views>
void decide_in(UnitOfWork& unit, F& f, const Views&... views) {
  static_assert(
      std::invocable<F&, Decision&, const Views&...>,
      "stela: decide() takes the views, then a callable of a stela::Decision& and of each "
      "view, const and in their order");
  [[maybe_unused]] const Reading reading = UnitAccess::log(unit).conventions().reading();
  std::tuple<ViewSlot<Views>...> slots{ViewSource<Views>{views, reading}...};
  std::apply(
      [&](auto&... slot) {
        std::vector<ViewReader*> readers;
        (slot.collect(readers), ...);
        decide_within(unit, [&] {
          if (!read_views(unit, readers)) return;
          Decision decision{unit};
          std::invoke(f, decision, slot.value()...);
        });
      },
      slots);
}

/// A decision that is a type of its own, with its views.
template <class D>
concept NamedDecision = requires(const D& decision) {
  decision.views();
};

/// Runs `arguments`: a named decision, or views and then a callable.
template <class... Arguments>
void decide_with(UnitOfWork& unit, Arguments&... arguments) {
  static_assert(sizeof...(Arguments) > 0, "stela: decide() takes views and a callable");
  auto all = std::forward_as_tuple(arguments...);
  constexpr std::size_t last = sizeof...(Arguments) - 1;
  auto& f = std::get<last>(all);
  using F = std::remove_cvref_t<decltype(f)>;
  if constexpr (last == 0 && NamedDecision<F>) {
    auto views = f.views();
    std::apply([&](const auto&... view) { decide_in(unit, f, view...); }, views);
  } else {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      decide_in(unit, f, std::get<I>(all)...);
    }
    (std::make_index_sequence<last>{});
  }
}

}  // namespace detail

/// Decides by the events that its views name, and appends what the decision records, atomically: if
/// an event that one of the views would have seen is appended meanwhile, the views are read again
/// and the decision runs again. Events of other tags or types never get in the way.
///
///     stela::decide(store, Capacity{course}, Load{student},
///         [&](stela::Decision& decision, const Capacity& capacity, const Load& load) {
///           if (capacity.left <= 0) throw Full{course};
///           decision.record(Subscribed{course, student});
///         });
///
/// A view may also be a vector of views. Alternatively, pass one object of your own decision type:
/// `views()` returns a tuple of views, and `operator()` takes the Decision and each view. The
/// callable may run several times, so it should only read its views and record. An exception from
/// it ends the decision, and nothing is appended. With an open transaction as `log` the decision
/// runs once: ConditionConflict if another writer was faster, so retry around `transact`.
/// TagsMissing if history lacks tags that a view needs. The other errors are those of `append`.
template <class... Arguments>
AppendResult decide(EventLog& log, const DecideOptions& options, Arguments&&... arguments) {
  return detail::decide(log, options,
                        [&](UnitOfWork& unit) { detail::decide_with(unit, arguments...); });
}

template <class First, class... Rest>
requires(!std::same_as<std::remove_cvref_t<First>, DecideOptions>) AppendResult
    decide(EventLog& log, First&& first, Rest&&... rest) {
  return decide(log, DecideOptions{}, first, rest...);
}

/// Decides as part of a unit of work. The views also see the unit's own events that aren't
/// appended yet. All decisions of a unit share one position, and its commit is refused
/// (ConditionConflict) if anything that one of them read has changed: retry around the whole unit.
/// If the decision throws after it has recorded an event, the unit can't be committed.
template <class... Arguments>
void decide(UnitOfWork& unit, Arguments&&... arguments) {
  detail::decide_with(unit, arguments...);
}

// Defined outside of the class, because functions inside are inline and would be compiled at each
// call.

template <Event E>
void Decision::record(E event) {
  static_assert(detail::check_recorded<E>());
  const StreamId stream = detail::first_tag(event);
  using Named = typename detail::TagValueOf<E, detail::FirstTag<E>>::Named;
  if constexpr (requires { typename Named::EventsType; }) {
    if (Named* const tracked = unit_.template find_tracked<Named>(stream)) {
      return detail::AggregateAccess::record(*tracked, std::move(event));
    }
  }
  unit_.append(stream, ExpectedVersion::any(), event);
}

template <class V>
V Decision::read(V view) {
  detail::TypedViewReader<V> reader{std::move(view),
                                    detail::UnitAccess::log(unit_).conventions().reading()};
  std::array<detail::ViewReader*, 1> one{&reader};
  detail::read_views(unit_, one);
  return reader.release();
}

}  // namespace stela
