// Sets of events, checked by the compiler, and the decoding of stored bytes into typed events.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/codec/detail/personal_check.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/tags.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stela {
namespace detail {

/// Checks every rule for one event, each with our own error message.
template <class E>
consteval bool check_event() {
  static_assert(Event<E>,
                "stela: an event is a struct with `static constexpr stela::EventType event_type{"
                "\"some.name\", 1, stela::should_publish or stela::local};`");
  static_assert(is_valid_event_name(E::event_type.name),
                "stela: an event's name is 1 to 128 characters: words of letters, digits, '_' and "
                "'-', separated by dots");
  static_assert(E::event_type.version >= 1, "stela: an event's version counts from 1");
  static_assert(std::is_default_constructible_v<E> && std::is_move_constructible_v<E>,
                "stela: an event must be default constructible and movable, to be read back");
  static_assert(codec::Serializable<E>,
                "stela: an event needs a cereal `serialize` for all of its fields");
  static_assert(check_tags<E>());
  static_assert(check_personal<E>());
  if constexpr (Renamed<E>) {
    static_assert(
        [] {
          for (const std::string_view name : E::former_names) {
            if (!is_valid_event_name(name) || name == E::event_type.name) return false;
          }
          return true;
        }(),
        "stela: former_names lists other valid names that the event was stored under");
  }
  if constexpr (Supersedes<E>) {
    using Old = typename E::Supersedes;
    static_assert(check_event<Old>());
    static_assert(Old::event_type.version == E::event_type.version - 1,
                  "stela: an event supersedes the struct of the version just before its own");
    static_assert(lists_name<E>(Old::event_type.name),
                  "stela: an event supersedes a struct of its own name, or of one that it lists in "
                  "former_names");
    static_assert(
        requires(Old old) {
          { E::upcast(std::move(old)) } -> std::same_as<E>;
        },
        "stela: an event that supersedes another needs `static E upcast(Old old)`");
  } else {
    static_assert(E::event_type.version == 1,
                  "stela: an event of version 2 or more names the struct of the version before as "
                  "`using Supersedes = …;`, so that what is stored stays readable");
  }
  if constexpr (RecordedAsBefore<E> && !Supersedes<E>) {
    static_assert(!RecordedAsBefore<E>,
                  "stela: `record_as` makes the version before of an event; one of version 1 has "
                  "none");
  } else if constexpr (RecordedAsBefore<E>) {
    static_assert(
        requires(const E& event) {
          { E::record_as(event) } -> std::same_as<typename E::Supersedes>;
        },
        "stela: an event that is still recorded as the version before says how by `static Old "
        "record_as(const E& event)`, with the struct that it supersedes");
    static_assert(declare_same_tags<E, typename E::Supersedes>(),
                  "stela: an event that is still recorded as the version before declares the same "
                  "tags as that; change its tags in a later release, without `record_as`");
  }
  return true;
}

template <class... Es>
consteval bool names_are_distinct() {
  bool distinct = true;
  std::size_t i = 0;
  const auto against_all = [&]<class A>(std::type_identity<A>) {
    std::size_t j = 0;
    ((distinct = distinct && (i >= j++ || !share_a_name<A, Es>())), ...);
    ++i;
  };
  (against_all(std::type_identity<Es>{}), ...);
  return distinct;
}

/// Adds to an exception of an upcast which payload it couldn't convert.
template <class E>
E upcast_from(typename E::Supersedes old) {
  try {
    return E::upcast(std::move(old));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw codec::DecodeError{"its upcast to v" + std::to_string(E::event_type.version) +
                             " failed: " + e.what()};
  }
}

/// Decodes the payload of version `version` and converts it up to `E`.
template <class E>
E decode_version(Codec codec, int version, std::string_view payload,
                 const codec::Opening& opening) {
  if constexpr (Supersedes<E>) {
    if (version != E::event_type.version) {
      return upcast_from<E>(
          decode_version<typename E::Supersedes>(codec, version, payload, opening));
    }
  }
  return codec::decode<E>(codec, payload, &opening);
}

/// True if `E`, or an event that it supersedes, has personal fields.
template <class E>
constexpr bool may_be_personal() {
  if constexpr (HasSubject<E>) {
    return true;
  } else if constexpr (Supersedes<E>) {
    return may_be_personal<typename E::Supersedes>();
  } else {
    return false;
  }
}

[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_corrupt(const StoredEvent& event,
                                                       std::string_view problem);
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_unknown(const StoredEvent& event);

/// CorruptEvent unless the payload is a complete `E`, or a version that `E` supersedes. KeyMissing.
template <class E>
E decode_event(Reading reading, const StoredEvent& event) {
  codec::Opening opening;
  if constexpr (may_be_personal<E>()) {
    opening = {reading.keys, codec::Place::of_event(event.id)};
  }
  try {
    return decode_version<E>(reading.codec, event.schema_version(), event.payload, opening);
  } catch (const codec::DecodeError& e) {
    throw_corrupt(event, e.what());
  }
}

template <class E>
bool is_stored_form_of(const EventKind& kind) {
  return answers_to<E>(kind.type) && reads_version<E>(kind.schema_version);
}

}  // namespace detail

/// The events that an aggregate records or a handler knows. The checks happen where it is used.
template <class... Es>
struct EventSet {
  static_assert(sizeof...(Es) > 0, "stela: an event set needs at least one event");
  static_assert((... && detail::check_event<Es>()));
  static_assert(detail::names_are_distinct<Es...>(),
                "stela: two events of this set have one name (or former name)");

  static constexpr std::size_t size = sizeof...(Es);
  using Variant = std::variant<Es...>;

  template <class E>
  static constexpr bool contains = (... || std::is_same_v<E, Es>);

  /// Calls `f(std::type_identity<E>{})` for each event.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(std::type_identity<Es>{}), ...);
  }
};

/// A description of one event of a set, without its type: for tools and documentation.
struct EventDescription {
  EventType type;
  std::vector<std::string_view> former_names;
  /// Every readable version, newest first.
  std::vector<int> versions;
};

/// All event sets of an application. Event names must also differ between the sets, because a name
/// identifies an event everywhere.
template <class... Sets>
struct Catalogue;

template <class... Sets>
requires(sizeof...(Sets) > 0) struct Catalogue<Sets...> {
  static std::vector<EventDescription> describe() {
    std::vector<EventDescription> all;
    const auto add = [&]<class E>(std::type_identity<E>) {
      EventDescription description{E::event_type, {}, {}};
      detail::for_each_name<E>([&](std::string_view name) {
        bool known = name == E::event_type.name;
        for (const auto former : description.former_names) known = known || former == name;
        if (!known) description.former_names.push_back(name);
      });
      for (int version = E::event_type.version; version > 0; --version) {
        if (detail::reads_version<E>(version)) description.versions.push_back(version);
      }
      all.push_back(std::move(description));
    };
    (Sets::for_each(add), ...);
    return all;
  }

 private:
  template <class... Es>
  struct Merged {
    static_assert(detail::names_are_distinct<Es...>(),
                  "stela: two events of this catalogue have one name (or former name)");
    static constexpr bool ok = true;
  };
  template <class...>
  struct Merge;
  template <class... Es>
  struct Merge<EventSet<Es...>> : Merged<Es...> {};
  template <class... As, class... Bs, class... Rest>
  struct Merge<EventSet<As...>, EventSet<Bs...>, Rest...> : Merge<EventSet<As..., Bs...>, Rest...> {
  };
  static_assert(Merge<Sets...>::ok);
};

/// Decodes stored events into the types of one set, and converts old versions. Threads: one at a
/// time. Make one for each load or handler; that is cheap.
template <class Events>
class EventDecoder;

template <class... Es>
class EventDecoder<EventSet<Es...>> {
 public:
  explicit EventDecoder(Reading reading) noexcept : reading_{reading} {}

  /// True if the set has the event, in any version.
  bool knows(const EventKind& kind) { return index_of(kind) >= 0; }

  /// Calls `f(E&&)`. UnknownEvent if the set doesn't have the event, CorruptEvent if its payload
  /// doesn't decode.
  template <class F>
  void decode(const StoredEvent& event, F&& f) {
    const int wanted = index_of(event.kind);
    if (wanted < 0) detail::throw_unknown(event);
    int i = 0;
    (void)(... || (i++ == wanted && (f(detail::decode_event<Es>(reading_, event)), true)));
  }

 private:
  int index_of(const EventKind& kind) {
    Known& known = known_[static_cast<std::size_t>(kind.number) % known_.size()];
    if (known.identity == kind.identity) return known.index;
    int found = -1;
    int i = 0;
    ((detail::is_stored_form_of<Es>(kind) ? void(found = i++) : void(i++)), ...);
    known = {kind.identity, found};
    return found;
  }

  struct Known {
    std::uint64_t identity = 0;
    int index = -1;
  };

  Reading reading_;
  /// A cache of kinds, by number. Two kinds with the same slot replace each other.
  std::array<Known, 32> known_{};
};

}  // namespace stela
