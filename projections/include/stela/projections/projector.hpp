// Projectors: plain classes that keep tables up to date with events.
#pragma once

#include <stela/eventstore/forget.hpp>
#include <stela/eventstore/sql.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/projections/export.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stela {

/// SQL on the tables of one projector, inside the transaction that moves its checkpoint. Write the
/// name of a table, index or trigger as {name}, so that several builds can exist beside each other.
/// Readers from outside find each table as a view with the plain name.
///
/// A statement may read any table. It may write only the projector's own tables, and can't begin or
/// end a transaction. UniquenessViolated if a UNIQUE constraint refuses a row, ConstraintViolated
/// for another constraint, UsageError for wrong SQL, and for a table with a constraint that is
/// INITIALLY DEFERRED. Threads: only the projector's.
class STELA_PROJECTIONS_EXPORT ReadModel : public SqlStatements {
 public:
  /// The name of the table {name} in the database. It differs from build to build, and can also
  /// name a model that is kept elsewhere.
  virtual std::string table(std::string_view name) const = 0;
};

/// Every projector has one: `static constexpr stela::ProjectorType projector_type{"name", 1};`
///
/// The name never changes. It has 1 to 64 characters of a-z, 0-9 and _, the first a letter. Raise
/// the version whenever the tables or their contents change: new tables are then built beside the
/// old ones.
struct ProjectorType {
  std::string_view name;
  int version = 1;
};

namespace detail {

/// What a projector does with an event.
enum class Handling : std::uint8_t {
  /// The event isn't in the projector's set.
  skip,
  handle,
  /// The event is in the set, but in a version that this process doesn't know.
  refuse,
};

/// Events that were decoded ahead, in the projector's own types.
class STELA_PROJECTIONS_EXPORT AnyDecoded {
 public:
  virtual ~AnyDecoded() = default;
};

/// A type-erased projector, as a runner drives it. Threads: one at a time; another thread may
/// decode ahead.
class STELA_PROJECTIONS_EXPORT AnyProjector {
 public:
  virtual ~AnyProjector() = default;
  virtual void create(ReadModel& model) = 0;
  virtual Handling handling(const EventKind& kind) = 0;
  /// Call it for events for which `handling` returns `handle`. CorruptEvent if the event doesn't
  /// decode.
  virtual void project(ReadModel& model, const StoredEvent& event) = 0;

  /// Decodes the handled ones of `events` into `into`, and replaces its contents. Creates the
  /// object if `into` is null. The events must outlive it.
  virtual void decode(std::span<const StoredEvent> events, std::unique_ptr<AnyDecoded>& into) = 0;
  /// As `project`, for an event that was decoded ahead.
  virtual void project(ReadModel& model, const StoredEvent& event, AnyDecoded& decoded) = 0;
};

/// All present and former names of the set's events.
template <class Events>
std::vector<std::string_view> event_names() {
  std::vector<std::string_view> all;
  Events::for_each([&]<class E>(std::type_identity<E>) {
    for_each_name<E>([&](std::string_view name) { all.push_back(name); });
  });
  return all;
}

/// Remembers how each kind of event is handled.
template <class Events>
class KindFilter {
 public:
  explicit KindFilter(const Reading& reading) noexcept : decoder_{reading} {}

  Handling handling(const EventKind& kind) {
    const auto number = static_cast<std::size_t>(kind.number);
    if (number >= known_.size()) known_.resize(number + 1);
    Known& known = known_[number];
    if (known.identity != kind.identity) known = {kind.identity, find(kind)};
    return known.handling;
  }
  EventDecoder<Events>& decoder() noexcept { return decoder_; }

 private:
  Handling find(const EventKind& kind) {
    if (decoder_.knows(kind)) return Handling::handle;
    for (const std::string_view name : event_names<Events>()) {
      if (name == kind.type) return Handling::refuse;
    }
    return Handling::skip;
  }

  struct Known {
    std::uint64_t identity = 0;
    Handling handling = Handling::skip;
  };

  EventDecoder<Events> decoder_;
  /// Indexed by the number of the event kind.
  std::vector<Known> known_;
};

struct ForeignProjection {};

constexpr bool is_valid_projector_name(std::string_view name) noexcept {
  return name.size() <= 64 && is_valid_category(name);
}

template <class P>
concept HasProjectorType = requires {
  { P::projector_type } -> std::convertible_to<const ProjectorType&>;
};

template <class T>
inline constexpr bool is_event_set = false;
template <class... Es>
inline constexpr bool is_event_set<EventSet<Es...>> = true;

template <class P, class E>
consteval bool check_project() {
  static_assert(
      requires(P & projector, ReadModel & model, const Recorded<E>& event) {
        projector.project(model, event);
      },
      "stela: the projector has no handler for one of its events; give it `void "
      "project(stela::ReadModel&, const stela::Recorded<E>&)` for the event that the lines around "
      "this one name");
  return true;
}

template <class P>
consteval bool check_projector() {
  static_assert(HasProjectorType<P>,
                "stela: a projector is a class with `static constexpr stela::ProjectorType "
                "projector_type{\"some_name\", 1};`");
  static_assert(is_valid_projector_name(P::projector_type.name),
                "stela: a projector's name is 1 to 64 characters of a-z, 0-9 and _, the first a "
                "letter");
  static_assert(P::projector_type.version >= 1, "stela: a projector's version counts from 1");
  static_assert(
      requires { requires is_event_set<typename P::Events>; },
      "stela: a projector names the events that it handles: `using Events = "
      "stela::EventSet<…>;`");
  static_assert(
      requires(P & projector, ReadModel & model) { projector.create(model); },
      "stela: a projector makes its tables in `void create(stela::ReadModel&)`");
  static_assert(
      !requires(P & projector, ReadModel & model, const Recorded<ForeignProjection>& event) {
        projector.project(model, event);
      },
      "stela: the projector has a catch-all `project`, which would swallow events "
      "without a handler; write one `project` for each event");
  static_assert(std::copy_constructible<P>,
                "stela: a projector is copied for each runner and each replay; keep what can't be "
                "copied behind a std::shared_ptr");
  P::Events::for_each([]<class E>(std::type_identity<E>) { static_assert(check_project<P, E>()); });
  return true;
}

/// A projector that keeps personal data unencrypted must remove it in `void
/// forget(stela::ReadModel&, const stela::StreamId& subject)`, which is called at the fence's place
/// in the log.
template <class P>
concept Forgets = requires(P& projector, ReadModel& model, const StreamId& subject) {
  projector.forget(model, subject);
};

/// The handled events, including fences if the projector forgets.
template <class P, class Events = typename P::Events>
struct HandledBy {
  using Type = Events;
};
template <Forgets P, class... Es>
requires(!EventSet<Es...>::template contains<Forgotten>) struct HandledBy<P, EventSet<Es...>> {
  using Type = EventSet<Es..., Forgotten>;
};

template <class P, class E>
void call_projector(P& projector, ReadModel& model, const E& event, const StoredEvent& record) {
  if constexpr (std::is_same_v<E, Forgotten> && Forgets<P>) {
    projector.forget(model, forgotten_subject(record.stream));
  }
  if constexpr (P::Events::template contains<E>) {
    projector.project(model, Recorded<E>{event, record});
  }
}

template <class P>
class TypedProjector final : public AnyProjector {
 public:
  TypedProjector(const P& projector, const Reading& reading)
      : projector_{projector}, filter_{reading}, filter_ahead_{reading} {}

  void create(ReadModel& model) override { projector_.create(model); }
  Handling handling(const EventKind& kind) override { return filter_.handling(kind); }
  void project(ReadModel& model, const StoredEvent& event) override {
    filter_.decoder().decode(event, [&]<class E>(const E& decoded) {
      call_projector(projector_, model, decoded, event);
    });
  }

  void decode(std::span<const StoredEvent> events, std::unique_ptr<AnyDecoded>& into) override {
    if (!into) into = std::make_unique<Decoded>();
    auto* const decoded = static_cast<Decoded*>(into.get());
    decoded->first = events.data();
    decoded->events.clear();
    decoded->events.resize(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (filter_ahead_.handling(events[i].kind) != Handling::handle) continue;
      try {
        filter_ahead_.decoder().decode(events[i], [&]<class E>(E&& event) {
          decoded->events[i].template emplace<std::remove_cvref_t<E>>(std::forward<E>(event));
        });
      } catch (...) {
        decoded->events[i] = std::current_exception();
      }
    }
  }

  void project(ReadModel& model, const StoredEvent& event, AnyDecoded& any) override {
    auto& decoded = static_cast<Decoded&>(any);
    const auto visitor = [&]<class E>(const E& one) {
      if constexpr (std::is_same_v<E, std::exception_ptr>) {
        std::rethrow_exception(one);
      } else if constexpr (!std::is_same_v<E, std::monostate>) {
        call_projector(projector_, model, one, event);
      }
    };
    std::visit(visitor, decoded.events[static_cast<std::size_t>(&event - decoded.first)]);
  }

 private:
  using Handled = typename HandledBy<P>::Type;
  template <class Set>
  struct OrError;
  template <class... Es>
  struct OrError<EventSet<Es...>> {
    using Type = std::variant<std::monostate, std::exception_ptr, Es...>;
  };
  struct Decoded final : AnyDecoded {
    const StoredEvent* first = nullptr;
    std::vector<typename OrError<Handled>::Type> events;
  };

  P projector_;
  KindFilter<Handled> filter_;
  KindFilter<Handled> filter_ahead_;
};

/// Whether a projector declares that it may receive events repeatedly: `static constexpr bool
/// is_idempotent = true;`
template <class P>
consteval bool is_idempotent() {
  if constexpr (requires { P::is_idempotent; }) return P::is_idempotent;
  return false;
}

}  // namespace detail

/// A class that can be registered as a projector. The compiler names each broken rule.
template <class P>
concept Projector = detail::check_projector<P>();

}  // namespace stela
