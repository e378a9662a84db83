// Processes, also called process managers: they record further events in response to events, and
// when timers that they set are due.
#pragma once

#include <stela/framework/unit_of_work.hpp>
#include <stela/projections/projector.hpp>
#include <stela/projections/recurrence.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela {

/// Every process has one: `static constexpr stela::ProcessType process_type{"name"};`. The name
/// never changes. It has the same form as a projector's.
struct ProcessType {
  std::string_view name;
};

/// Every timer has one: `static constexpr stela::TimerType timer_type{"not_paid", 1};`. Both are
/// stored, and follow the rules for those of an event.
struct TimerType {
  std::string_view name;
  int version = 1;
};

namespace detail {

/// A change of a timer: set, moved or cleared.
struct TimerChange {
  std::string_view kind;
  int version = 1;
  /// Empty: cleared.
  std::optional<Timestamp> due = {};
  std::string recurrence = {};
  std::string payload = {};
};

/// A timer that is due.
struct DueTimer {
  std::string_view kind;
  int version = 1;
  std::string_view payload;
};

struct ProcessAccess;

}  // namespace detail

/// The instance of a process that an event or a timer belongs to, while that is handled. Changes of
/// timers commit with the unit's events, if the handler returns. Threads: only the handler's.
class STELA_PROJECTIONS_EXPORT Process {
 public:
  /// The longest key.
  static constexpr std::size_t max_key_size =
      StreamId::max_category_size + 1 + StreamId::max_key_size;

  /// Loads aggregates and records events on them. It commits with the checkpoint; UsageError if the
  /// handler commits it.
  UnitOfWork& unit() noexcept { return unit_; }
  /// The instance's key.
  const std::string& key() const noexcept { return key_; }
  /// When the event was recorded, or when the timer was due.
  Timestamp time() const noexcept { return time_; }

  /// Sets the instance's timer of this kind, or moves it. A time in the past is due at once, and
  /// one before 1970 counts as 1970. UsageError for a time after the year 9999.
  template <class T>
  void set(const T& timer, Timestamp due) {
    add<T>(due, {}, timer);
  }
  /// The same, with a delay after `time()`.
  template <class T>
  void set(const T& timer, std::chrono::microseconds delay) {
    add<T>(after(delay), {}, timer);
  }
  /// Sets a timer that fires repeatedly until it is cleared or changed. Times that pass without a
  /// runner coalesce into one. UsageError if the interval is shorter than a second or longer than a
  /// century, the time of day isn't within a day, or the zone is unknown.
  template <class T>
  void set(const T& timer, const Every& every) {
    add_recurring<T>(every, timer);
  }
  template <class T>
  void set(const T& timer, const DailyAt& daily) {
    add_recurring<T>(daily, timer);
  }
  /// Clears the instance's timer of this kind, if it is set. It won't fire again.
  template <class T>
  void clear() {
    check_kind(T::timer_type.name);
    changes_.push_back({.kind = T::timer_type.name, .version = T::timer_type.version});
  }

 private:
  friend struct detail::ProcessAccess;

  struct Setting {
    /// The names of the process and its instance.
    std::string_view name;
    std::string key;
    Timestamp time;
    Reading reading;
    /// The process's kinds of timers.
    std::span<const std::string_view> kinds;
  };

  Process(UnitOfWork& unit, Setting setting)
      : unit_{unit},
        name_{setting.name},
        key_{std::move(setting.key)},
        time_{setting.time},
        reading_{setting.reading},
        kinds_{setting.kinds} {}

  Timestamp after(std::chrono::microseconds delay) const;
  void check_kind(std::string_view kind) const;
  Timestamp check_due(std::string_view kind, Timestamp due) const;

  template <class T>
  void add(Timestamp due, std::string recurrence, const T& timer) {
    check_kind(T::timer_type.name);
    due = check_due(T::timer_type.name, due);
    detail::TimerChange change{.kind = T::timer_type.name,
                               .version = T::timer_type.version,
                               .due = due,
                               .recurrence = std::move(recurrence)};
    codec::Sealing sealing{
        .show = codec::Sealing::Show::sealed, .keys = reading_.keys, .place = place_of<T>()};
    const auto stream = stream_of_key();
    if (stream) sealing.stream = &*stream;
    codec::encode(reading_.codec, timer, change.payload, &sealing);
    changes_.push_back(std::move(change));
  }
  /// The place of its timer of this kind.
  template <class T>
  codec::Place place_of(int version = T::timer_type.version) const {
    return codec::Place::of_timer(name_, key_, T::timer_type.name, version);
  }
  /// The stream that the instance is named after, if there is one.
  std::optional<StreamId> stream_of_key() const;
  template <class T>
  void add_recurring(const Recurrence& recurrence, const T& timer) {
    detail::check_recurrence(recurrence);
    add<T>(detail::first_due(recurrence, time_), detail::to_text(recurrence), timer);
  }

  UnitOfWork& unit_;
  std::string_view name_;
  std::string key_;
  Timestamp time_;
  Reading reading_;
  std::span<const std::string_view> kinds_;
  std::vector<detail::TimerChange> changes_;
};

namespace detail {

/// Access for runners and the test kit.
struct STELA_PROJECTIONS_EXPORT ProcessAccess {
  /// `name` must outlive it.
  static Process make(UnitOfWork& unit, std::string_view name, std::string key, Timestamp time,
                      const Reading& reading, std::span<const std::string_view> kinds) {
    return Process{unit, {name, std::move(key), time, reading, kinds}};
  }
  /// How to open the payload of its timer of this kind and version.
  template <class T>
  static codec::Opening opening(const Process& process, int version) {
    return {process.reading_.keys, process.template place_of<T>(version)};
  }
  /// UsageError unless the key is 1 to 255 bytes of UTF-8 without control characters.
  static void check_key(std::string_view key);
  static void set_key(Process& process, std::string key) {
    check_key(key);
    process.key_ = std::move(key);
  }
  static std::span<const TimerChange> changes(const Process& process) noexcept {
    return process.changes_;
  }
};

/// A type-erased process or reaction, as a runner drives it. Threads: one at a time.
class STELA_PROJECTIONS_EXPORT AnyProcess {
 public:
  virtual ~AnyProcess() = default;
  virtual Handling handling(const EventKind& kind) = 0;
  virtual void react(Process& process, const StoredEvent& event) = 0;

  /// The instance that the event belongs to; doesn't handle the event.
  virtual std::string key_of(const StoredEvent& event) { return event.stream.name(); }
  /// The kinds of timers that it sets. Empty for a reaction.
  virtual std::span<const std::string_view> timer_kinds() const noexcept { return {}; }
  /// Whether it can handle timers of this kind and version.
  virtual bool knows_timer(std::string_view, int) const noexcept { return false; }
  /// Call it only for known timers. CorruptEvent if the timer doesn't decode.
  virtual void due(Process&, const DueTimer&) {}
};

/// A struct that declares a `timer_type`.
template <class T>
concept IsTimer = std::is_class_v<T> && requires {
  { T::timer_type } -> std::convertible_to<const TimerType&>;
};

/// Checks every rule for one timer, each with its own error message.
template <class T>
consteval bool check_timer() {
  static_assert(IsTimer<T>,
                "stela: a timer is a struct with `static constexpr stela::TimerType "
                "timer_type{\"some_name\", 1};`");
  static_assert(is_valid_event_name(T::timer_type.name),
                "stela: a timer's name is 1 to 128 characters: words of letters, digits, '_' and "
                "'-', separated by dots");
  static_assert(T::timer_type.version >= 1, "stela: a timer's version counts from 1");
  static_assert(std::is_default_constructible_v<T> && std::is_move_constructible_v<T>,
                "stela: a timer must be default constructible and movable, to be read back");
  static_assert(codec::Serializable<T>,
                "stela: a timer needs a cereal `serialize` for all of its fields");
  static_assert(check_personal<T>());
  if constexpr (Supersedes<T>) {
    using Old = typename T::Supersedes;
    static_assert(check_timer<Old>());
    static_assert(Old::timer_type.version == T::timer_type.version - 1 &&
                      Old::timer_type.name == T::timer_type.name,
                  "stela: a timer supersedes the struct of its own name and of the version just "
                  "before its own");
    static_assert(
        requires(Old old) {
          { T::upcast(std::move(old)) } -> std::same_as<T>;
        },
        "stela: a timer that supersedes another needs `static T upcast(Old old)`");
  } else {
    static_assert(T::timer_type.version == 1,
                  "stela: a timer of version 2 or more names the struct of the version before as "
                  "`using Supersedes = …;`, so that timers that are set stay readable");
  }
  return true;
}

template <class T>
constexpr bool reads_timer_version(int version) {
  if (version == T::timer_type.version) return true;
  if constexpr (Supersedes<T>) return reads_timer_version<typename T::Supersedes>(version);
  return false;
}

template <class T>
T decode_timer(Codec codec, int version, std::string_view payload, const codec::Opening& opening) {
  if constexpr (Supersedes<T>) {
    if (version != T::timer_type.version) {
      return T::upcast(decode_timer<typename T::Supersedes>(codec, version, payload, opening));
    }
  }
  return codec::decode<T>(codec, payload, &opening);
}

[[noreturn]] STELA_PROJECTIONS_EXPORT void throw_corrupt_timer(std::string_view kind,
                                                               std::string_view problem);

template <class... Ts>
consteval bool timer_names_are_distinct() {
  const std::string_view names[] = {Ts::timer_type.name...};
  for (std::size_t i = 0; i < sizeof...(Ts); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) return false;
    }
  }
  return true;
}

}  // namespace detail

/// The timers that a process sets.
template <class... Ts>
struct TimerSet {
  static_assert(sizeof...(Ts) > 0,
                "stela: a timer set needs at least one timer; a process without timers is a "
                "reaction");
  static_assert((... && detail::check_timer<Ts>()));
  static_assert(detail::timer_names_are_distinct<Ts...>(),
                "stela: two timers of this set have one name");

  static constexpr std::string_view names[] = {Ts::timer_type.name...};

  static constexpr bool knows(std::string_view kind, int version) noexcept {
    return (... || (kind == Ts::timer_type.name && detail::reads_timer_version<Ts>(version)));
  }

  /// Calls `f(std::type_identity<T>{})` for each timer.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(std::type_identity<Ts>{}), ...);
  }
};

namespace detail {

struct ForeignTimer {
  static constexpr TimerType timer_type{"stela.foreign", 1};
};

template <class T>
inline constexpr bool is_timer_set = false;
template <class... Ts>
inline constexpr bool is_timer_set<TimerSet<Ts...>> = true;

template <class P, class E>
consteval bool check_process_react() {
  static_assert(
      requires(P & one, Process & process, const Recorded<E>& event) { one.react(process, event); },
      "stela: the process has no handler for one of its events; give it `void "
      "react(stela::Process&, const stela::Recorded<E>&)` for the event that the lines around this "
      "one name");
  if constexpr (requires(P & one, const Recorded<E>& event) { one.key(event); }) {
    static_assert(
        requires(P & one, const Recorded<E>& event) {
          { one.key(event) } -> std::convertible_to<std::string>;
        },
        "stela: `key` of a process returns the name of an instance, a std::string");
  }
  return true;
}

template <class P, class T>
consteval bool check_due() {
  static_assert(
      requires(P & one, Process & process, const T& timer) { one.due(process, timer); },
      "stela: the process has no handler for one of its timers; give it `void "
      "due(stela::Process&, const T&)` for the timer that the lines around this one name");
  return true;
}

template <class P>
consteval bool check_process() {
  static_assert(
      requires {
        { P::process_type } -> std::convertible_to<const ProcessType&>;
      },
      "stela: a process is a class with `static constexpr stela::ProcessType "
      "process_type{\"some_name\"};`");
  static_assert(is_valid_projector_name(P::process_type.name),
                "stela: a process's name is 1 to 64 characters of a-z, 0-9 and _, the first a "
                "letter");
  static_assert(
      requires { requires is_event_set<typename P::Events>; },
      "stela: a process names the events that it handles: `using Events = stela::EventSet<…>;`");
  static_assert(
      requires { requires is_timer_set<typename P::Timers>; },
      "stela: a process names the timers that it sets: `using Timers = stela::TimerSet<…>;`; "
      "without timers it is a reaction");
  static_assert(
      !requires(P & one, Process & process, const Recorded<ForeignProjection>& event) {
        one.react(process, event);
      },
      "stela: the process has a catch-all `react`, which would swallow events without a handler; "
      "write one `react` for each event");
  static_assert(
      !requires(P & one, Process & process, const ForeignTimer& timer) { one.due(process, timer); },
      "stela: the process has a catch-all `due`, which would swallow timers without a handler; "
      "write one `due` for each timer");
  static_assert(std::copy_constructible<P>,
                "stela: a process is copied for each runner; keep what can't be copied behind a "
                "std::shared_ptr");
  P::Events::for_each(
      []<class E>(std::type_identity<E>) { static_assert(check_process_react<P, E>()); });
  P::Timers::for_each([]<class T>(std::type_identity<T>) { static_assert(check_due<P, T>()); });
  return true;
}

template <class P>
class TypedProcess final : public AnyProcess {
 public:
  TypedProcess(const P& process, const Reading& reading)
      : process_{process}, codec_{reading.codec}, filter_{reading} {}

  Handling handling(const EventKind& kind) override { return filter_.handling(kind); }

  void react(Process& process, const StoredEvent& event) override {
    filter_.decoder().decode(event, [&]<class E>(const E& decoded) {
      const Recorded<E> recorded{decoded, event};
      if constexpr (requires { process_.key(recorded); }) {
        ProcessAccess::set_key(process, process_.key(recorded));
      }
      process_.react(process, recorded);
    });
  }

  std::string key_of(const StoredEvent& event) override {
    std::string key = event.stream.name();
    filter_.decoder().decode(event, [&]<class E>(const E& decoded) {
      const Recorded<E> recorded{decoded, event};
      if constexpr (requires { process_.key(recorded); }) key = process_.key(recorded);
    });
    return key;
  }

  std::span<const std::string_view> timer_kinds() const noexcept override {
    return P::Timers::names;
  }
  bool knows_timer(std::string_view kind, int version) const noexcept override {
    return P::Timers::knows(kind, version);
  }

  void due(Process& process, const DueTimer& timer) override {
    P::Timers::for_each([&]<class T>(std::type_identity<T>) {
      if (timer.kind == T::timer_type.name) process_.due(process, decoded<T>(process, timer));
    });
  }

 private:
  template <class T>
  T decoded(const Process& process, const DueTimer& timer) const {
    const codec::Opening opening = ProcessAccess::opening<T>(process, timer.version);
    try {
      return decode_timer<T>(codec_, timer.version, timer.payload, opening);
    } catch (const codec::DecodeError& e) {
      throw_corrupt_timer(timer.kind, e.what());
    }
  }

  P process_;
  Codec codec_;
  KindFilter<typename P::Events> filter_;
};

}  // namespace detail

/// A class that can be registered as a process. The compiler names each broken rule.
template <class P>
concept ProcessManager = detail::check_process<P>();

}  // namespace stela
