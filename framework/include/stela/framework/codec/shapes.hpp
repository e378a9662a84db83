// What the archives need to know about a type: which of a few shapes it has.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/export.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela::codec {

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

/// Forwards to another value without standing for one itself.
template <class T>
inline constexpr bool is_transparent = is_optional<T> || is_wrapper<T>;

template <class T>
inline constexpr bool is_time = false;
template <class Rep, class Period>
inline constexpr bool is_time<std::chrono::duration<Rep, Period>> = true;
template <class Clock, class Duration>
inline constexpr bool is_time<std::chrono::time_point<Clock, Duration>> = true;

template <class T>
inline constexpr bool is_fixed_array = std::is_bounded_array_v<T>;
template <class T, std::size_t N>
inline constexpr bool is_fixed_array<std::array<T, N>> = true;

template <class T>
inline constexpr std::size_t fixed_array_size = std::extent_v<T>;
template <class T, std::size_t N>
inline constexpr std::size_t fixed_array_size<std::array<T, N>> = N;

/// The integer type that an arithmetic type is written as; `char` and its kin as numbers.
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

/// An enum that has a function `enum_names(E)` beside it, returning pairs of value and name.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  { (*enum_names(e).begin()).first } -> std::convertible_to<E>;
  { (*enum_names(e).begin()).second } -> std::convertible_to<std::string_view>;
};

/// A key that is written as text: a string, or a type whose minimal form is one.
template <class Key>
concept TextKey = std::is_same_v<Key, std::string> || requires(const Key& key, int archive) {
  { key.save_minimal(archive) } -> std::same_as<std::string>;
};

template <class T>
concept TextMap = requires {
  typename T::key_type;
  typename T::mapped_type;
}
&&TextKey<typename T::key_type>&& requires(T map, const typename T::key_type& key) {
  { map.try_emplace(key).second } -> std::convertible_to<bool>;  // not a multimap
};

template <class T>
concept Unordered = requires {
  typename T::hasher;
};

template <class Archive, class Key>
decltype(auto) text_of(const Archive& archive, const Key& key) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return (key);
  } else {
    return key.save_minimal(archive);
  }
}

template <class Key, class Archive>
Key from_text(const Archive& archive, const std::string& text) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return text;
  } else {
    Key key{};
    key.load_minimal(archive, text);
    return key;
  }
}

template <class Key>
bool text_less(const Key& a, const Key& b) {
  const int unused = 0;
  return text_of(unused, a) < text_of(unused, b);
}

template <class Map, class F>
void for_each_sorted(const Map& map, F&& f) {
  if constexpr (Unordered<Map>) {
    std::vector<const typename Map::value_type*> entries;
    entries.reserve(map.size());
    for (const auto& entry : map) entries.push_back(&entry);
    std::sort(entries.begin(), entries.end(),
              [](const auto* a, const auto* b) { return text_less(a->first, b->first); });
    for (const auto* entry : entries) f(*entry);
  } else {
    for (const auto& entry : map) f(entry);
  }
}

/// One element of a container, in the form that cereal gives it: a map's entry as key and value.
template <class Archive, class T>
void archive_element(Archive& archive, const T& element) {
  archive(element);
}
template <class Archive, class Key, class Value>
void archive_element(Archive& archive, const std::pair<const Key, Value>& entry) {
  archive(cereal::make_map_item(entry.first, entry.second));
}

/// RFC 3339 with `digits` (0, 3, 6 or 9) digits behind the point, from nanoseconds since 1970.
STELA_FRAMEWORK_EXPORT std::string format_rfc3339(std::int64_t seconds, std::uint32_t nanoseconds,
                                                  int digits);

struct ParsedTime {
  std::int64_t seconds;
  std::uint32_t nanoseconds;
};
STELA_FRAMEWORK_EXPORT std::optional<ParsedTime> parse_rfc3339(std::string_view text);

template <class Duration>
constexpr int fraction_digits() {
  using Period = typename Duration::period;
  if constexpr (std::ratio_greater_equal_v<Period, std::ratio<1>>) return 0;
  if constexpr (std::ratio_greater_equal_v<Period, std::milli>) return 3;
  if constexpr (std::ratio_greater_equal_v<Period, std::micro>) return 6;
  return 9;
}

template <class Duration>
std::string format_time(std::chrono::sys_time<Duration> time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds);
  return format_rfc3339(seconds.time_since_epoch().count(),
                        static_cast<std::uint32_t>(rest.count()), fraction_digits<Duration>());
}

/// Nothing if the text isn't a time, or isn't a whole number of `Duration`s, or doesn't fit.
template <class Duration>
std::optional<std::chrono::sys_time<Duration>> parse_time(std::string_view text) {
  const auto parsed = parse_rfc3339(text);
  if (!parsed) return std::nullopt;
  const auto limit = std::chrono::floor<std::chrono::seconds>(Duration::max()).count();
  if (parsed->seconds >= limit || parsed->seconds <= -limit) return std::nullopt;
  const std::chrono::nanoseconds rest{parsed->nanoseconds};
  const auto fraction = std::chrono::floor<Duration>(rest);
  if (fraction != rest) return std::nullopt;
  return std::chrono::sys_time<Duration>{
      std::chrono::duration_cast<Duration>(std::chrono::seconds{parsed->seconds}) + fraction};
}

}  // namespace stela::codec
