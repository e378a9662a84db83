// Makes a plain struct an event: gives it a name, a version, and says whether it is published.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace stela {

/// `local` events stay in the store. `should_publish` ones are also enqueued in the outbox, in the
/// same transaction.
enum class Publication : bool { local, should_publish };

inline constexpr Publication local = Publication::local;
inline constexpr Publication should_publish = Publication::should_publish;

/// Every event has one: `static constexpr stela::EventType event_type{"order.placed", 1, …}`.
///
/// The name never changes: it is stored and published. It has 1 to 128 characters: words of
/// letters, digits, `_` and `-`, separated by dots. The version counts the forms of the payload,
/// from 1.
struct EventType {
  std::string_view name;
  int version = 1;
  Publication publication = Publication::local;
};

constexpr bool is_valid_event_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 128 || name.front() == '.' || name.back() == '.') return false;
  char previous = '.';
  for (const char c : name) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (!word && (c != '.' || previous == '.')) return false;
    previous = c;
  }
  return true;
}

/// A struct that declares an `event_type`.
template <class E>
concept Event = std::is_class_v<E> && requires {
  { E::event_type } -> std::convertible_to<const EventType&>;
};

/// The default publication policy as a concept: the event type decides.
template <class E>
concept ShouldPublish = Event<E> && E::event_type.publication == Publication::should_publish;

/// A renamed event lists its former names: `static constexpr auto former_names =
/// stela::names("order.created");`
template <class... Text>
constexpr std::array<std::string_view, sizeof...(Text)> names(Text... text) {
  return {std::string_view{text}...};
}

namespace detail {

template <class E>
concept Supersedes = requires {
  typename E::Supersedes;
};

/// During the roll-out of a version, events are still recorded as the previous version: see
/// `record_as` in "Roll out a new version of an event".
template <class E>
concept RecordedAsBefore = requires {
  &E::record_as;
}
|| requires(const E& event) {
  E::record_as(event);
};

template <class E>
concept Renamed = requires {
  E::former_names.size();
};

/// True if `name` is the name of `E` or one of its former names.
template <class E>
constexpr bool lists_name(std::string_view name) {
  if (name == E::event_type.name) return true;
  if constexpr (Renamed<E>) {
    for (const std::string_view former : E::former_names) {
      if (former == name) return true;
    }
  }
  return false;
}

/// Calls `f(name)` for the name and the former names of `E` and of the events that it supersedes.
template <class E, class F>
constexpr void for_each_name(F&& f) {
  f(E::event_type.name);
  if constexpr (Renamed<E>) {
    for (const std::string_view name : E::former_names) f(name);
  }
  if constexpr (Supersedes<E>) for_each_name<typename E::Supersedes>(f);
}

template <class E>
constexpr bool answers_to(std::string_view wanted) {
  bool found = false;
  for_each_name<E>([&](std::string_view name) { found = found || name == wanted; });
  return found;
}

template <class A, class B>
constexpr bool share_a_name() {
  bool shared = false;
  for_each_name<A>([&](std::string_view name) { shared = shared || answers_to<B>(name); });
  return shared;
}

/// The number of versions that can be read as an `E`: its own and those that it supersedes.
template <class E>
constexpr bool reads_version(int version) {
  if (version == E::event_type.version) return true;
  if constexpr (Supersedes<E>) return reads_version<typename E::Supersedes>(version);
  return false;
}

}  // namespace detail
}  // namespace stela
