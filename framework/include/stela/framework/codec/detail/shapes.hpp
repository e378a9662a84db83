// Classifies types for the archives.
#pragma once

#include <cereal/cereal.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <forward_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela {

template <class T, auto Whose = nullptr>
class Personal;

namespace codec {

template <class T>
inline constexpr bool is_personal = false;
template <class T, auto Whose>
inline constexpr bool is_personal<Personal<T, Whose>> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_wrapper = false;
template <class T>
inline constexpr bool is_wrapper<cereal::NameValuePair<T>> = true;
template <class T>
inline constexpr bool is_wrapper<cereal::SizeTag<T>> = true;
template <class T>
inline constexpr bool is_wrapper<cereal::DeferredData<T>> = true;
// The fields of a base class are written among those of the class itself.
template <class T>
inline constexpr bool is_wrapper<cereal::base_class<T>> = true;
template <class T>
inline constexpr bool is_wrapper<cereal::virtual_base_class<T>> = true;

template <class T>
inline constexpr bool is_unique_ptr = false;
template <class T, class Deleter>
inline constexpr bool is_unique_ptr<std::unique_ptr<T, Deleter>> =
    !std::is_array_v<T> && !std::is_polymorphic_v<T>;

/// Written as null, or as the value that it holds.
template <class T>
inline constexpr bool is_nullable = is_optional<T> || is_unique_ptr<T>;

/// Forwards to another value, and isn't a value itself.
template <class T>
inline constexpr bool is_transparent = is_nullable<T> || is_wrapper<T>;

template <class T>
inline constexpr bool is_time = false;
template <class Rep, class Period>
inline constexpr bool is_time<std::chrono::duration<Rep, Period>> = true;
template <class Clock, class Duration>
inline constexpr bool is_time<std::chrono::time_point<Clock, Duration>> = true;

/// Has a fixed number of elements, given by its type.
template <class T>
inline constexpr bool is_fixed_array = std::is_bounded_array_v<T>;
template <class T, std::size_t N>
inline constexpr bool is_fixed_array<std::array<T, N>> = true;
template <class... Ts>
inline constexpr bool is_fixed_array<std::tuple<Ts...>> = true;

template <class T>
inline constexpr std::size_t fixed_array_size = std::extent_v<T>;
template <class T, std::size_t N>
inline constexpr std::size_t fixed_array_size<std::array<T, N>> = N;
template <class... Ts>
inline constexpr std::size_t fixed_array_size<std::tuple<Ts...>> = sizeof...(Ts);

template <class T>
inline constexpr bool is_bitset = false;
template <std::size_t N>
inline constexpr bool is_bitset<std::bitset<N>> = true;

/// The integer type as which an arithmetic type is written. `char` and similar types are numbers.
template <class T>
using Number = std::conditional_t<
    std::is_signed_v<T>,
    std::conditional_t<
        sizeof(T) == 8, std::int64_t,
        std::conditional_t<sizeof(T) == 4, std::int32_t,
                           std::conditional_t<sizeof(T) == 2, std::int16_t, std::int8_t>>>,
    std::conditional_t<
        sizeof(T) == 8, std::uint64_t,
        std::conditional_t<sizeof(T) == 4, std::uint32_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>>;

template <class T>
constexpr auto as_number(T value) noexcept {
  return static_cast<Number<T>>(value);
}

template <class E>
concept HasEnumNames = std::is_enum_v<E> && requires(E e) {
  enum_names(e);
};

/// An enum with a function `enum_names(E)` beside it. The function returns a range of pairs of
/// value and name, like std::array<std::pair<E, const char*>, N>.
template <class E>
concept NamedEnum = HasEnumNames<E> && requires(E e) {
  { (*enum_names(e).begin()).first } -> std::convertible_to<E>;
  { (*enum_names(e).begin()).second } -> std::convertible_to<std::string_view>;
};

/// An enum that accepts every number of its underlying type.
template <class E>
concept FixedEnum = std::is_enum_v<E> && requires {
  E{std::underlying_type_t<E>{}};
};

template <class E>
constexpr bool check_enum() {
  static_assert(!HasEnumNames<E> || NamedEnum<E>,
                "stela: enum_names(E) must return a range of pairs of a value and its name, like "
                "std::array<std::pair<E, const char*>, N>");
  static_assert(HasEnumNames<E> || FixedEnum<E>,
                "stela: an event can't hold an enum without an underlying type, which has numbers "
                "that mean nothing; write `enum class E` or `enum E : int`, or give it "
                "enum_names(E)");
  return true;
}

/// Shared pointers are refused. cereal stores them by an id, which damaged bytes could turn into an
/// object of another type. An event is a value, so it needs no shared objects.
template <class T>
constexpr void refuse_shared_pointer() {
  static_assert(!std::is_same_v<T, T>,
                "stela: an event can't hold a shared_ptr; hold the value, an optional or a "
                "unique_ptr");
}

/// Reports the innermost value that can't be stored, before cereal reports it in other words.
template <bool is_serializable, class T>
constexpr void check_value() {
  static_assert(
      is_wrapper<T> || std::is_empty_v<T> || is_serializable,
      "stela: an event or a snapshot holds a value that can't be stored; the lines around "
      "this one name its type: give it a cereal `serialize`, or include "
      "<cereal/types/...> if it is a standard type");
}

/// The name of an enumerator; empty if it has none.
template <NamedEnum E>
std::optional<std::string> name_of(E value) {
  for (const auto& [known, name] : enum_names(E{})) {
    if (known == value) return std::string{name};
  }
  return std::nullopt;
}
template <NamedEnum E>
std::optional<E> from_name(std::string_view text) {
  for (const auto& [known, name] : enum_names(E{})) {
    if (std::string_view{name} == text) return known;
  }
  return std::nullopt;
}
/// The enumerator with this number; empty if no named one has it.
template <NamedEnum E>
std::optional<E> from_number(std::underlying_type_t<E> number) {
  for (const auto& [known, name] : enum_names(E{})) {
    if (static_cast<std::underlying_type_t<E>>(known) == number) return known;
  }
  return std::nullopt;
}

template <class T>
concept Unordered = requires {
  typename T::hasher;
};

/// Maps with one value for each key.
template <class T>
concept UniqueMap = requires(T map, const typename T::key_type& key) {
  typename T::mapped_type;
  { map.try_emplace(key).second } -> std::convertible_to<bool>;
};

/// The elements of an unordered container, ordered by their encoded keys, so that equal values have
/// equal bytes.
template <class Archive, class Container>
std::vector<const typename Container::value_type*> in_encoded_order(const Container& container) {
  static_assert(
      !is_personal<typename Container::key_type>,
      "stela: an unordered container can't hold personal values as its keys: sealed, they "
      "have no order");
  struct Entry {
    std::string bytes;
    const typename Container::value_type* element;
  };
  std::vector<Entry> entries;
  entries.reserve(container.size());
  for (const auto& element : container) {
    Archive archive{entries.emplace_back(Entry{{}, &element}).bytes};
    if constexpr (requires { typename Container::mapped_type; }) {
      archive(element.first);
      if constexpr (!UniqueMap<Container>) archive(element.second);
    } else {
      archive(element);
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.bytes < b.bytes; });
  std::vector<const typename Container::value_type*> elements;
  elements.reserve(entries.size());
  for (const Entry& entry : entries) elements.push_back(entry.element);
  return elements;
}

/// One element of a container, in cereal's form: a map's entry as key and value.
template <class Archive, class T>
void archive_element(Archive& archive, const T& element) {
  archive(element);
}
template <class Archive, class Key, class Value>
void archive_element(Archive& archive, const std::pair<const Key, Value>& entry) {
  archive(cereal::make_map_item(entry.first, entry.second));
}

/// The most memory to reserve for announced elements. For more, the elements must be present.
inline constexpr std::size_t max_reserved_bytes = std::size_t{64} * 1024;

/// Loads the elements one by one, so that announced elements that are missing cost no memory.
/// (cereal's own load allocates them all first.)
template <class Archive, class Sequence>
void load_sequence(Archive& archive, Sequence& sequence) {
  using Element = typename Sequence::value_type;
  cereal::size_type size = 0;
  archive(cereal::make_size_tag(size));
  sequence.clear();
  if constexpr (requires { sequence.reserve(1); }) {
    constexpr std::size_t most = std::max<std::size_t>(max_reserved_bytes / sizeof(Element), 1);
    sequence.reserve(static_cast<std::size_t>(std::min<cereal::size_type>(size, most)));
  }
  for (cereal::size_type i = 0; i < size; ++i) archive(sequence.emplace_back());
}
template <class Archive, class T, class Allocator>
void load_sequence(Archive& archive, std::forward_list<T, Allocator>& list) {
  cereal::size_type size = 0;
  archive(cereal::make_size_tag(size));
  list.clear();
  auto last = list.before_begin();
  for (cereal::size_type i = 0; i < size; ++i) {
    last = list.emplace_after(last);
    archive(*last);
  }
}
/// Loads a map or a set. Equivalent elements of a multimap or multiset keep the order in which they
/// were written. (cereal's own load reverses them, and reserves as many as announced.)
template <class Archive, class Container>
void load_in_order(Archive& archive, Container& container) {
  cereal::size_type size = 0;
  archive(cereal::make_size_tag(size));
  container.clear();
  for (cereal::size_type i = 0; i < size; ++i) {
    typename Container::key_type key{};
    if constexpr (requires { typename Container::mapped_type; }) {
      typename Container::mapped_type value{};
      archive(cereal::make_map_item(key, value));
      container.emplace_hint(container.end(), std::move(key), std::move(value));
    } else {
      archive(key);
      container.emplace_hint(container.end(), std::move(key));
    }
  }
}

}  // namespace codec
}  // namespace stela
