// How values are written as plain JSON. docs/payload-json.md describes the format. Included by
// json_archive.hpp.
#pragma once

#include <stela/framework/codec/detail/json_archive.hpp>
#include <stela/framework/codec/detail/shapes.hpp>
#include <stela/framework/codec/rfc3339.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <bitset>
#include <chrono>
#include <concepts>
#include <deque>
#include <forward_list>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace stela::json {

// --- numbers and text

template <class T>
requires std::is_arithmetic_v<T>
void save(OutputArchive& archive, const T& value) {
  static_assert(!std::is_same_v<T, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  if constexpr (std::is_same_v<T, bool>) {
    append_bool(archive.out(), value);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!try_append_double(archive.out(), value)) {
      archive.fail("is NaN or infinite, which JSON can't hold");
    }
  } else {
    append_integer(archive.out(), codec::as_number(value));
  }
}

template <class T>
requires std::is_arithmetic_v<T>
void load(InputArchive& archive, T& value) {
  static_assert(!std::is_same_v<T, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  Reader& reader = archive.reader();
  if constexpr (std::is_same_v<T, bool>) {
    value = reader.get_bool();
  } else if constexpr (std::is_floating_point_v<T>) {
    if constexpr (std::is_same_v<T, float>) {
      value = reader.get_float();
    } else {
      value = reader.get_double();
    }
  } else if constexpr (std::is_signed_v<T>) {
    const std::int64_t wide = reader.get_int64();
    if (!std::in_range<codec::Number<T>>(wide)) reader.fail("is out of range for its type");
    value = static_cast<T>(wide);
  } else {
    const std::uint64_t wide = reader.get_uint64();
    if (!std::in_range<codec::Number<T>>(wide)) reader.fail("is out of range for its type");
    value = static_cast<T>(wide);
  }
}

inline void save(OutputArchive& archive, const std::string& value) {
  if (!try_append_string(archive.out(), value)) archive.fail("isn't valid UTF-8");
}
inline void load(InputArchive& archive, std::string& value) {
  value = archive.reader().get_string();
}

template <std::size_t N>
void save(OutputArchive& archive, const std::bitset<N>& bits) {
  append_string(archive.out(), bits.to_string());
}
template <std::size_t N>
void load(InputArchive& archive, std::bitset<N>& bits) {
  const std::string_view text = archive.reader().get_string();
  if (text.size() != N || text.find_first_not_of("01") != std::string_view::npos) {
    archive.reader().fail("isn't a text of as many 0 and 1 as the bitset has bits");
  }
  bits = std::bitset<N>{std::string{text}};
}

// --- types that only forward

template <class T>
void save(OutputArchive& archive, const cereal::NameValuePair<T>& pair) {
  archive.set_next_name(pair.name);
  archive(pair.value);
}
template <class T>
void load(InputArchive& archive, cereal::NameValuePair<T>& pair) {
  archive.set_next_name(pair.name);
  archive(pair.value);
}

template <class T>
void save(OutputArchive& archive, const cereal::SizeTag<T>&) {
  archive.make_array();
}
template <class T>
void load(InputArchive& archive, cereal::SizeTag<T>& tag) {
  tag.size = static_cast<std::decay_t<T>>(archive.make_array());
}

template <class T>
constexpr void check_nullable() {
  static_assert(!codec::is_nullable<T>,
                "stela: an optional can't hold another optional or a unique_ptr; JSON has only one "
                "null");
}

template <class T>
void save_nullable(OutputArchive& archive, const T* value) {
  if (value != nullptr) {
    archive(*value);
  } else {
    archive.begin_value();
    archive.out() += "null";
  }
}
/// True if there is a value to load.
inline bool find_not_null(InputArchive& archive) {
  if (!archive.find_value() || archive.reader().is_null()) return false;
  archive.keep_value();
  return true;
}

template <class T>
void save(OutputArchive& archive, const std::optional<T>& value) {
  check_nullable<T>();
  save_nullable(archive, value ? &*value : nullptr);
}
template <class T>
void load(InputArchive& archive, std::optional<T>& value) {
  check_nullable<T>();
  value.reset();
  if (find_not_null(archive)) archive(value.emplace());
}

template <class T, class Deleter>
requires codec::is_unique_ptr<std::unique_ptr<T, Deleter>>
void save(OutputArchive& archive, const std::unique_ptr<T, Deleter>& value) {
  check_nullable<T>();
  save_nullable(archive, value.get());
}
template <class T, class Deleter>
requires codec::is_unique_ptr<std::unique_ptr<T, Deleter>>
void load(InputArchive& archive, std::unique_ptr<T, Deleter>& value) {
  check_nullable<T>();
  value.reset();
  if (!find_not_null(archive)) return;
  auto* const fresh = cereal::access::construct<std::remove_const_t<T>>();
  value.reset(fresh);
  archive(*fresh);
}

template <class T>
void save(OutputArchive&, const std::shared_ptr<T>&) {
  codec::refuse_shared_pointer<T>();
}
template <class T>
void load(InputArchive&, std::shared_ptr<T>&) {
  codec::refuse_shared_pointer<T>();
}

// --- times

template <class Rep, class Period>
void save(OutputArchive& archive, const std::chrono::duration<Rep, Period>& value) {
  save(archive, value.count());
}
template <class Rep, class Period>
void load(InputArchive& archive, std::chrono::duration<Rep, Period>& value) {
  Rep count{};
  load(archive, count);
  value = std::chrono::duration<Rep, Period>{count};
}

template <class Clock, class Duration>
constexpr bool is_written_as_text =
    std::is_same_v<Clock, std::chrono::system_clock>&& codec::has_rfc3339_form<Duration>();

template <class Clock, class Duration>
void save(OutputArchive& archive, const std::chrono::time_point<Clock, Duration>& value) {
  if constexpr (is_written_as_text<Clock, Duration>) {
    const std::string text = codec::format_time<Duration>(value);
    if (text.empty()) archive.fail("lies outside the years 0000 to 9999");
    append_string(archive.out(), text);
  } else {
    save(archive, value.time_since_epoch());
  }
}
template <class Clock, class Duration>
void load(InputArchive& archive, std::chrono::time_point<Clock, Duration>& value) {
  if constexpr (is_written_as_text<Clock, Duration>) {
    const auto time = codec::parse_time<Duration>(archive.reader().get_string());
    if (!time)
      archive.reader().fail("isn't a time as RFC 3339 has it, in UTC, that its type holds");
    value = *time;
  } else {
    Duration since_epoch{};
    load(archive, since_epoch);
    value = std::chrono::time_point<Clock, Duration>{since_epoch};
  }
}

// --- enums with names

template <codec::NamedEnum E>
std::string save_minimal(const OutputArchive& archive, const E& value) {
  const auto name = codec::name_of(value);
  if (!name) {
    const std::string number =
        std::to_string(codec::as_number(static_cast<std::underlying_type_t<E>>(value)));
    archive.fail("is " + number + ", for which enum_names has no name");
  }
  return *name;
}
template <codec::NamedEnum E>
void load_minimal(const InputArchive& archive, E& value, const std::string& text) {
  const auto known = codec::from_name<E>(text);
  if (!known) archive.reader().fail("isn't one of the enum's names");
  value = *known;
}

// --- tuples, maps and sets

template <class... Ts>
void serialize(OutputArchive& archive, std::tuple<Ts...>& tuple) {
  std::apply([&](Ts&... values) { (archive(values), ...); }, tuple);
}
template <class... Ts>
void serialize(InputArchive& archive, std::tuple<Ts...>& tuple) {
  std::apply([&](Ts&... values) { (archive(values), ...); }, tuple);
}

template <class Key>
concept KeyWithMinimalText = requires(const Key& key, const OutputArchive& archive) {
  { key.save_minimal(archive) } -> std::same_as<std::string>;
};
template <class Key>
concept KeyWithFreeText = requires(const Key& key, const OutputArchive& archive) {
  { save_minimal(archive, key) } -> std::same_as<std::string>;
};

/// A key that can be the name of a member: a string, or a type whose minimal form is a text (an id,
/// a Uuid, an enum with names).
template <class Key>
concept TextKey =
    std::is_same_v<Key, std::string> || KeyWithMinimalText<Key> || KeyWithFreeText<Key>;

template <class Map>
concept TextMap = codec::UniqueMap<Map> && TextKey<typename Map::key_type>;

template <TextKey Key>
decltype(auto) text_of(const OutputArchive& archive, const Key& key) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return (key);
  } else if constexpr (KeyWithMinimalText<Key>) {
    return key.save_minimal(archive);
  } else {
    return save_minimal(archive, key);
  }
}

template <TextKey Key>
Key from_text(const InputArchive& archive, const std::string& text) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return text;
  } else {
    Key key{};
    if constexpr (KeyWithMinimalText<Key>) {
      key.load_minimal(archive, text);
    } else {
      load_minimal(archive, key, text);
    }
    return key;
  }
}

template <class Map>
void save_members(OutputArchive& archive, const Map& map) {
  std::vector<std::pair<std::string, const typename Map::mapped_type*>> members;
  members.reserve(map.size());
  for (const auto& [key, value] : map) members.emplace_back(text_of(archive, key), &value);
  std::sort(members.begin(), members.end());
  for (const auto& [name, value] : members) {
    archive.set_next_name(name);
    archive(*value);
  }
}

template <template <class...> class Map, class... Args>
requires TextMap<Map<Args...>>
void save(OutputArchive& archive, const Map<Args...>& map) {
  archive.make_object();
  if constexpr (codec::Unordered<Map<Args...>>) {
    save_members(archive, map);
  } else {
    for (const auto& [key, value] : map) {
      const auto& name = text_of(archive, key);
      archive.set_next_name(name);
      archive(value);
    }
  }
}
template <template <class...> class Map, class... Args>
requires TextMap<Map<Args...>>
void load(InputArchive& archive, Map<Args...>& map) {
  archive.make_object();
  map.clear();
  std::string name;
  while (archive.reader().next_member(name)) {
    archive.keep_value();
    typename Map<Args...>::mapped_type value{};
    archive(value);
    auto key = from_text<typename Map<Args...>::key_type>(archive, name);
    if (!map.try_emplace(std::move(key), std::move(value)).second) {
      archive.reader().fail("appears twice");
    }
  }
}

template <class Container>
void save_sorted(OutputArchive& archive, const Container& container) {
  archive.make_array();
  for (const auto* element : codec::in_encoded_order<OutputArchive>(container)) {
    codec::archive_element(archive, *element);
  }
}

template <class Key, class Hash, class Equal, class Allocator>
void save(OutputArchive& archive, const std::unordered_set<Key, Hash, Equal, Allocator>& set) {
  save_sorted(archive, set);
}
template <class Key, class Hash, class Equal, class Allocator>
void save(OutputArchive& archive, const std::unordered_multiset<Key, Hash, Equal, Allocator>& set) {
  save_sorted(archive, set);
}
template <template <class...> class Map, class... Args>
requires(codec::Unordered<Map<Args...>> &&
         !TextMap<Map<Args...>>) void save(OutputArchive& archive, const Map<Args...>& map) {
  save_sorted(archive, map);
}

// --- containers: each element is created when it is read, not when its count is announced

template <class T, class Allocator>
requires(!std::is_same_v<T, bool>) void load(InputArchive& archive,
                                             std::vector<T, Allocator>& vector) {
  codec::load_sequence(archive, vector);
}
template <class T, class Allocator>
void load(InputArchive& archive, std::deque<T, Allocator>& deque) {
  codec::load_sequence(archive, deque);
}
template <class T, class Allocator>
void load(InputArchive& archive, std::list<T, Allocator>& list) {
  codec::load_sequence(archive, list);
}
template <class T, class Allocator>
void load(InputArchive& archive, std::forward_list<T, Allocator>& list) {
  codec::load_sequence(archive, list);
}
template <class Key, class Hash, class Equal, class Allocator>
void load(InputArchive& archive, std::unordered_set<Key, Hash, Equal, Allocator>& set) {
  codec::load_in_order(archive, set);
}
template <class Key, class Hash, class Equal, class Allocator>
void load(InputArchive& archive, std::unordered_multiset<Key, Hash, Equal, Allocator>& set) {
  codec::load_in_order(archive, set);
}
template <class Key, class Compare, class Allocator>
void load(InputArchive& archive, std::multiset<Key, Compare, Allocator>& set) {
  codec::load_in_order(archive, set);
}
template <class Key, class Value, class Compare, class Allocator>
void load(InputArchive& archive, std::multimap<Key, Value, Compare, Allocator>& map) {
  codec::load_in_order(archive, map);
}

}  // namespace stela::json
