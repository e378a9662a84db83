// cereal archives for clean JSON: what a user's `serialize` is called with.
//
// The form, in full in docs/schema.md: compact; fields in the order in which they are declared;
// integers as integers; finite doubles in their shortest form; `optional` as the value or null;
// maps with text keys as objects, sorted if the container isn't; enums by number unless they have
// names; durations as counts; times as RFC 3339.
#pragma once

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/json_reader.hpp>
#include <stela/framework/codec/json_writer.hpp>
#include <stela/framework/codec/shapes.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace stela::json {

inline constexpr std::size_t max_depth = 128;

class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>,
                      public cereal::traits::TextArchive {
 public:
  /// Appends to `out`, which must outlive the archive.
  explicit OutputArchive(std::string& out)
      : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>{this}, out_{out} {
    nodes_.reserve(8);
  }

  void set_next_name(std::string_view name) noexcept { next_name_ = name; }

  void begin_node() {
    begin_value();
    if (nodes_.size() == max_depth) throw codec::EncodeError{"values are nested too deeply"};
    nodes_.push_back({});
  }
  void make_object() { make(Kind::object, '{'); }
  void make_array() { make(Kind::array, '['); }
  void end_node() {
    if (nodes_.back().kind == Kind::unopened) make_object();
    out_ += nodes_.back().kind == Kind::array ? ']' : '}';
    nodes_.pop_back();
  }

  /// Writes the comma and the name that belong before a value.
  void begin_value() {
    if (nodes_.empty()) return;
    Node& parent = nodes_.back();
    if (parent.kind == Kind::unopened) make_object();
    if (parent.count++ != 0) out_ += ',';
    if (parent.kind == Kind::array) return;
    if (next_name_.data() != nullptr) {
      append_string(out_, std::exchange(next_name_, {}));
    } else {
      append_string(out_, "value" + std::to_string(parent.unnamed++));
    }
    out_ += ':';
  }

  std::string& out() noexcept { return out_; }

 private:
  enum class Kind : std::uint8_t { unopened, object, array };
  struct Node {
    Kind kind = Kind::unopened;
    std::size_t count = 0;
    std::size_t unnamed = 0;
  };

  void make(Kind kind, char bracket) {
    if (nodes_.back().kind != Kind::unopened) return;
    nodes_.back().kind = kind;
    out_ += bracket;
  }

  std::string& out_;
  std::vector<Node> nodes_;
  std::string_view next_name_;
};

class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>,
                     public cereal::traits::TextArchive {
 public:
  explicit InputArchive(Reader& reader)
      : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>{this}, reader_{reader} {
    nodes_.reserve(8);
  }

  void set_next_name(std::string_view name) noexcept { next_name_ = name; }

  void begin_node() {
    begin_value();
    if (nodes_.size() == max_depth) reader_.fail("values are nested too deeply");
    nodes_.push_back({});
  }
  std::size_t make_array() {
    nodes_.back().kind = Kind::array;
    return reader_.open_array();
  }
  void make_object() {
    if (nodes_.back().kind != Kind::unopened) return;
    nodes_.back().kind = Kind::object;
    reader_.open_object();
  }
  void end_node() {
    if (nodes_.back().kind == Kind::unopened) make_object();
    nodes_.pop_back();
    reader_.close();
  }

  /// Makes the value that the next load is about the reader's current one.
  void begin_value() {
    if (!find_value()) reader_.fail_missing(name_);
  }
  /// As begin_value, but false if there is no such member.
  bool find_value() {
    if (std::exchange(found_, false) || nodes_.empty()) return true;
    Node& parent = nodes_.back();
    if (parent.kind == Kind::array) {
      if (!reader_.next_element()) reader_.fail("has fewer elements than expected");
      return true;
    }
    make_object();
    name_ = std::exchange(next_name_, {});
    if (name_.data() == nullptr) {
      unnamed_ = "value" + std::to_string(parent.unnamed++);
      name_ = unnamed_;
    }
    return reader_.select(name_);
  }
  /// The next begin_value finds the current value already there.
  void keep_value() noexcept { found_ = true; }

  Reader& reader() const noexcept { return reader_; }

 private:
  enum class Kind : std::uint8_t { unopened, object, array };
  struct Node {
    Kind kind = Kind::unopened;
    std::size_t unnamed = 0;
  };

  Reader& reader_;
  std::vector<Node> nodes_;
  std::string_view next_name_;
  std::string_view name_;
  std::string unnamed_;
  bool found_ = false;
};

}  // namespace stela::json

CEREAL_SETUP_ARCHIVE_TRAITS(stela::json::InputArchive, stela::json::OutputArchive)

namespace stela::json {

// How a value of type T is framed. What only forwards to other values (a named pair, a size, an
// optional, a type with a minimal form) has no frame of its own; scalars stand for themselves;
// everything else is an object or an array.
template <class T>
constexpr bool is_forwarding =
    codec::is_transparent<T> ||
    cereal::traits::has_minimal_output_serialization<T, OutputArchive>::value;

template <class T>
constexpr bool is_scalar = std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                           std::is_same_v<T, std::nullptr_t> || codec::is_time<T>;

template <class T>
constexpr bool is_node = !is_forwarding<T> && !is_scalar<T>;

template <class T>
void prologue(OutputArchive& archive, const T&) {
  if constexpr (is_node<T>) {
    archive.begin_node();
    if constexpr (codec::is_fixed_array<T>) archive.make_array();
  } else if constexpr (is_scalar<T>) {
    archive.begin_value();
  }
}
template <class T>
void epilogue(OutputArchive& archive, const T&) {
  if constexpr (is_node<T>) archive.end_node();
}

template <class T>
void begin_load(InputArchive& archive) {
  if constexpr (is_node<T>) {
    archive.begin_node();
    if constexpr (codec::is_fixed_array<T>) {
      if (archive.make_array() != codec::fixed_array_size<T>) {
        archive.reader().fail("has another number of elements than expected");
      }
    }
  } else if constexpr (is_scalar<T>) {
    archive.begin_value();
  }
}
// Both, because cereal passes values that aren't initialised yet: by a reference to const they
// would count as read.
template <class T>
void prologue(InputArchive& archive, const T&) {
  begin_load<T>(archive);
}
template <class T>
requires(!std::is_const_v<T>) void prologue(InputArchive& archive, T&) {
  begin_load<T>(archive);
}
template <class T>
void epilogue(InputArchive& archive, const T&) {
  if constexpr (is_node<T>) archive.end_node();
}

// --- scalars

template <class T>
requires std::is_arithmetic_v<T>
void save(OutputArchive& archive, const T& value) {
  static_assert(!std::is_same_v<T, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  if constexpr (std::is_same_v<T, bool>) {
    append_bool(archive.out(), value);
  } else if constexpr (std::is_floating_point_v<T>) {
    append_double(archive.out(), value);
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
    const double wide = reader.get_double();
    if (wide > std::numeric_limits<T>::max() || wide < std::numeric_limits<T>::lowest()) {
      reader.fail("is too large for its type");
    }
    value = static_cast<T>(wide);
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
  append_string(archive.out(), value);
}
inline void load(InputArchive& archive, std::string& value) {
  value = archive.reader().get_string();
}

inline void save(OutputArchive& archive, const std::nullptr_t&) {
  archive.out() += "null";
}
inline void load(InputArchive& archive, std::nullptr_t& value) {
  if (!archive.reader().is_null()) archive.reader().fail("expected null");
  value = nullptr;
}

// --- what only forwards

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
void save(OutputArchive& archive, const std::optional<T>& value) {
  if (value) {
    archive(*value);
  } else {
    archive.begin_value();
    archive.out() += "null";
  }
}
template <class T>
void load(InputArchive& archive, std::optional<T>& value) {
  if (!archive.find_value() || archive.reader().is_null()) {
    value.reset();
    return;
  }
  archive.keep_value();
  archive(value.emplace());
}

// --- times

template <class Rep, class Period>
void save(OutputArchive& archive, const std::chrono::duration<Rep, Period>& value) {
  save(archive, value.count());
}
template <class Rep, class Period>
void load(InputArchive& archive, std::chrono::duration<Rep, Period>& value) {
  Rep count;
  load(archive, count);
  value = std::chrono::duration<Rep, Period>{count};
}

template <class Clock, class Duration>
void save(OutputArchive& archive, const std::chrono::time_point<Clock, Duration>& value) {
  if constexpr (std::is_same_v<Clock, std::chrono::system_clock>) {
    append_string(archive.out(), codec::format_time<Duration>(value));
  } else {
    save(archive, value.time_since_epoch());
  }
}
template <class Clock, class Duration>
void load(InputArchive& archive, std::chrono::time_point<Clock, Duration>& value) {
  if constexpr (std::is_same_v<Clock, std::chrono::system_clock>) {
    const auto time = codec::parse_time<Duration>(archive.reader().get_string());
    if (!time) archive.reader().fail("isn't a time as RFC 3339 has it, in UTC");
    value = *time;
  } else {
    Duration since_epoch;
    load(archive, since_epoch);
    value = std::chrono::time_point<Clock, Duration>{since_epoch};
  }
}

// --- enums with names

template <codec::NamedEnum E>
std::string save_minimal(const OutputArchive&, const E& value) {
  for (const auto& [known, name] : enum_names(E{})) {
    if (known == value) return std::string{name};
  }
  throw codec::EncodeError{"an enum has the value " +
                           std::to_string(static_cast<std::int64_t>(value)) +
                           ", for which enum_names has no name"};
}
template <codec::NamedEnum E>
void load_minimal(const InputArchive& archive, E& value, const std::string& text) {
  for (const auto& [known, name] : enum_names(E{})) {
    if (name == text) {
      value = known;
      return;
    }
  }
  archive.reader().fail("isn't one of the enum's names");
}

// --- maps and sets

template <template <class...> class Map, class... Args>
requires codec::TextMap<Map<Args...>>
void save(OutputArchive& archive, const Map<Args...>& map) {
  archive.make_object();
  codec::for_each_sorted(map, [&](const auto& entry) {
    const auto& key = codec::text_of(archive, entry.first);
    archive.set_next_name(key);
    archive(entry.second);
  });
}
template <template <class...> class Map, class... Args>
requires codec::TextMap<Map<Args...>>
void load(InputArchive& archive, Map<Args...>& map) {
  archive.make_object();
  map.clear();
  std::string name;
  while (archive.reader().next_member(name)) {
    archive.keep_value();
    typename Map<Args...>::mapped_type value{};
    archive(value);
    map.emplace(codec::from_text<typename Map<Args...>::key_type>(archive, name), std::move(value));
  }
}

/// Unordered containers of anything else: their elements in the order of their JSON, so that equal
/// values have equal bytes.
template <class Container>
void save_sorted(OutputArchive& archive, const Container& container) {
  archive.make_array();
  std::vector<std::string> elements;
  elements.reserve(container.size());
  for (const auto& element : container) {
    OutputArchive nested{elements.emplace_back()};
    codec::archive_element(nested, element);
  }
  std::sort(elements.begin(), elements.end());
  for (const std::string& element : elements) {
    archive.begin_value();
    archive.out() += element;
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
         !codec::TextMap<Map<Args...>>) void save(OutputArchive& archive, const Map<Args...>& map) {
  save_sorted(archive, map);
}

}  // namespace stela::json
