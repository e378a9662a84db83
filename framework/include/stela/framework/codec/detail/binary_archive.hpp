// cereal archives for cereal's portable binary format, little-endian. They write the same bytes as
// cereal::PortableBinaryOutputArchive, except that unordered containers have a fixed order. They
// write to a string and read from a view, and check every length before they use it.
#pragma once

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/sealing.hpp>
#include <stela/framework/codec/detail/shapes.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace stela::binary {

namespace detail {

template <std::size_t Size>
void reverse_if_big_endian(char* bytes, std::size_t count) {
  if constexpr (std::endian::native == std::endian::big && Size > 1) {
    for (std::size_t i = 0; i < count; ++i) std::reverse(bytes + i * Size, bytes + (i + 1) * Size);
  }
}

}  // namespace detail

/// How deeply values may be nested. Each class, container and pointer counts.
inline constexpr std::size_t max_depth = 512;

/// How many values may take no bytes at all because their class is empty. If the payload has more
/// bytes, that number applies.
inline constexpr std::size_t max_empty_elements = 4096;

namespace detail {

/// Counts the open classes, containers and pointers. Threads: one at a time.
class Levels {
 public:
  /// False if there are too many.
  bool begin() noexcept {
    if (open_ == max_depth) return false;
    ++open_;
    ++empty_;
    return true;
  }
  /// The bytes belong to every open level.
  void add_bytes() noexcept { empty_ = 0; }
  /// Ends the innermost level. True if it had no bytes.
  bool end() noexcept {
    --open_;
    if (empty_ == 0) return false;
    --empty_;
    return true;
  }

 private:
  std::size_t open_ = 0;
  /// The number of innermost levels that have had no bytes yet.
  std::size_t empty_ = 0;
};

}  // namespace detail

/// Threads: one at a time.
class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision> {
 public:
  /// Appends to `out`, which must outlive the archive.
  explicit OutputArchive(std::string& out, codec::Sealing* sealing = nullptr)
      : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>{this},
        out_{out},
        personal_{sealing} {
    out_ += '\1';  // cereal's mark for little-endian
  }

  template <std::size_t Size>
  void write(const void* data, std::size_t count) {
    if (count == 0) return;
    levels_.add_bytes();
    const std::size_t begin = out_.size();
    out_.append(static_cast<const char*>(data), count * Size);
    detail::reverse_if_big_endian<Size>(out_.data() + begin, count);
  }

  void begin_level() {
    if (!levels_.begin())
      throw codec::EncodeError{"the payload is nested more than 512 levels deep"};
  }
  void end_level() noexcept {
    if (levels_.end()) ++empty_values_;
  }

  /// Remembers a size, so that `finish` can check whether a reader would accept it.
  void note_size(std::size_t count) {
    if (count > max_empty_elements) sizes_.push_back({count, out_.size()});
  }
  /// EncodeError if a reader would refuse the written bytes.
  void finish() const {
    if (empty_values_ > std::max(out_.size() - begin_, max_empty_elements)) refuse_empty();
    for (const auto& [count, begin] : sizes_) {
      if (count > out_.size() - begin) refuse_empty();
    }
  }

  std::string path() const { return "the payload"; }

  codec::PersonalWriter& personal() noexcept { return personal_; }

 private:
  struct Size {
    std::size_t count;
    std::size_t begin;
  };
  [[noreturn]] static void refuse_empty() {
    throw codec::EncodeError{"the payload has more than 4096 elements that take no bytes"};
  }

  std::string& out_;
  const std::size_t begin_ = out_.size();
  std::vector<Size> sizes_;
  detail::Levels levels_;
  std::size_t empty_values_ = 0;
  codec::PersonalWriter personal_;
};

/// Threads: one at a time.
class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision> {
 public:
  explicit InputArchive(std::string_view bytes, const codec::Opening* opening = nullptr)
      : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>{this},
        rest_{bytes},
        max_empty_values_{std::max(bytes.size(), max_empty_elements)},
        personal_{opening} {
    if (rest_.empty() || rest_.front() != '\1') {
      throw codec::DecodeError{"the payload doesn't begin as portable binary does"};
    }
    rest_.remove_prefix(1);
  }

  /// DecodeError if the remaining bytes are too few for `count` numbers.
  template <std::size_t Size>
  void expect(std::uint64_t count) const {
    if (count > rest_.size() / Size) throw codec::DecodeError{"the payload ends too early"};
  }

  template <std::size_t Size>
  void read(void* data, std::size_t count) {
    expect<Size>(count);
    if (count == 0) return;
    levels_.add_bytes();
    std::memcpy(data, rest_.data(), count * Size);
    detail::reverse_if_big_endian<Size>(static_cast<char*>(data), count);
    rest_.remove_prefix(count * Size);
  }
  /// A bool with any other byte would be undefined behaviour.
  void read_bools(void* data, std::size_t count) {
    const std::string_view bytes = rest_.substr(0, count);
    if (std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte != 0 && byte != 1; })) {
      throw codec::DecodeError{"the payload has a bool that is neither true nor false"};
    }
    read<1>(data, count);
  }
  /// Unlike cereal, doesn't fill the text with zeros first.
  void read_text(std::string& text) {
    std::uint64_t size = 0;
    read<sizeof size>(&size, 1);
    check_size(size);
    expect<1>(size);
    text.assign(rest_, 0, static_cast<std::size_t>(size));
    rest_.remove_prefix(text.size());
  }

  void begin_level() {
    if (!levels_.begin())
      throw codec::DecodeError{"the payload is nested more than 512 levels deep"};
  }
  void end_level() {
    if (levels_.end() && ++empty_values_ > max_empty_values_) {
      throw codec::DecodeError{"the payload has more than " + std::to_string(max_empty_values_) +
                               " elements that take no bytes"};
    }
  }

  /// Each element takes at least one byte, except for empty classes, of which only a few are
  /// accepted.
  void check_size(std::uint64_t count) const {
    if (count > std::max(rest_.size(), max_empty_elements)) {
      throw codec::DecodeError{"the payload announces " + std::to_string(count) +
                               " elements, but has only " + std::to_string(rest_.size()) +
                               " bytes left"};
    }
  }

  void finish() const {
    if (!rest_.empty()) {
      throw codec::DecodeError{"the payload has " + std::to_string(rest_.size()) +
                               " bytes too many"};
    }
  }

  /// The format has no names, so there is no path to show.
  std::string path() const { return "the payload"; }

  codec::PersonalReader& personal() noexcept { return personal_; }

 private:
  std::string_view rest_;
  detail::Levels levels_;
  std::size_t max_empty_values_;
  std::size_t empty_values_ = 0;
  codec::PersonalReader personal_;
};

}  // namespace stela::binary

CEREAL_SETUP_ARCHIVE_TRAITS(stela::binary::InputArchive, stela::binary::OutputArchive)

namespace stela::binary {

template <class T>
constexpr bool is_level = std::is_class_v<T> && !codec::is_wrapper<T> && !codec::is_personal<T> &&
                          !std::is_same_v<T, std::string>;

template <class T>
void prologue(OutputArchive& archive, const T& value) {
  codec::check_value<cereal::traits::is_output_serializable<T, OutputArchive>::value, T>();
  if constexpr (std::is_enum_v<T>) static_assert(codec::check_enum<T>());
  if constexpr (is_level<T>) archive.begin_level();
  if constexpr (stela::detail::HasSubject<T>) {
    archive.personal().enter(stela::detail::OpenObject::of(value));
  }
}
template <class T>
void epilogue(OutputArchive& archive, const T&) {
  if constexpr (stela::detail::HasSubject<T>) archive.personal().leave();
  if constexpr (is_level<T>) archive.end_level();
}
template <class T>
void begin_load(InputArchive& archive) {
  codec::check_value<cereal::traits::is_input_serializable<T, InputArchive>::value, T>();
  if constexpr (is_level<T>) archive.begin_level();
}
// Two overloads, because cereal passes values that aren't initialised yet: a reference to const
// would count as reading them.
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
  if constexpr (is_level<T>) archive.end_level();
}

// --- numbers

template <class T>
constexpr void check_number() {
  static_assert(!std::is_same_v<T, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
}

template <class T>
requires std::is_arithmetic_v<T>
void save(OutputArchive& archive, const T& value) {
  check_number<T>();
  archive.write<sizeof(T)>(&value, 1);
}
template <class T>
requires std::is_arithmetic_v<T>
void load(InputArchive& archive, T& value) {
  check_number<T>();
  if constexpr (std::is_same_v<T, bool>) {
    archive.read_bools(&value, 1);
  } else {
    archive.read<sizeof(T)>(&value, 1);
  }
}

template <class T>
void save(OutputArchive& archive, const cereal::BinaryData<T>& data) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  check_number<Element>();
  archive.write<sizeof(Element)>(data.data, static_cast<std::size_t>(data.size) / sizeof(Element));
}
template <class T>
void load(InputArchive& archive, cereal::BinaryData<T>& data) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  check_number<Element>();
  const std::size_t count = static_cast<std::size_t>(data.size) / sizeof(Element);
  if constexpr (std::is_same_v<Element, bool>) {
    archive.read_bools(data.data, count);
  } else {
    archive.read<sizeof(Element)>(data.data, count);
  }
}

// --- text in cereal's form: its size, then its bytes

inline void save(OutputArchive& archive, const std::string& text) {
  const std::uint64_t size = text.size();
  archive.write<sizeof size>(&size, 1);
  archive.write<1>(text.data(), text.size());
}
inline void load(InputArchive& archive, std::string& text) {
  archive.read_text(text);
}

// --- enums with names: a number without one is refused

template <codec::NamedEnum E>
std::underlying_type_t<E> save_minimal(const OutputArchive&, const E& value) {
  const auto number = static_cast<std::underlying_type_t<E>>(value);
  if (!codec::from_number<E>(number)) {
    throw codec::EncodeError{"the payload has the enumerator " +
                             std::to_string(codec::as_number(number)) +
                             ", for which enum_names has no name"};
  }
  return number;
}
template <codec::NamedEnum E>
void load_minimal(const InputArchive&, E& value, const std::underlying_type_t<E>& number) {
  const auto known = codec::from_number<E>(number);
  if (!known) {
    throw codec::DecodeError{"the payload has the enumerator " +
                             std::to_string(codec::as_number(number)) +
                             ", for which enum_names has no name"};
  }
  value = *known;
}

// --- types that only forward

template <class T>
void serialize(OutputArchive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void serialize(InputArchive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

template <class T>
void serialize(OutputArchive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  archive.note_size(static_cast<std::size_t>(tag.size));
}
template <class T>
void serialize(InputArchive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  archive.check_size(static_cast<std::uint64_t>(tag.size));
}

template <class T>
void save(OutputArchive&, const std::shared_ptr<T>&) {
  codec::refuse_shared_pointer<T>();
}
template <class T>
void load(InputArchive&, std::shared_ptr<T>&) {
  codec::refuse_shared_pointer<T>();
}

// --- unordered containers: cereal's form, but in an order that doesn't depend on their history

template <class Container>
void save_sorted(OutputArchive& archive, const Container& container) {
  archive(cereal::make_size_tag(static_cast<cereal::size_type>(container.size())));
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
requires(codec::Unordered<Map<Args...>>) void save(OutputArchive& archive,
                                                   const Map<Args...>& map) {
  save_sorted(archive, map);
}

// --- containers: each element is created when it is read, not when its count is announced

template <class T, class Allocator>
requires(!std::is_same_v<T, bool>) void load(InputArchive& archive,
                                             std::vector<T, Allocator>& vector) {
  if constexpr (std::is_arithmetic_v<T>) {
    cereal::size_type size = 0;
    archive(cereal::make_size_tag(size));
    archive.expect<sizeof(T)>(size);
    vector.resize(static_cast<std::size_t>(size));
    archive(cereal::binary_data(vector.data(), vector.size() * sizeof(T)));
  } else {
    codec::load_sequence(archive, vector);
  }
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

}  // namespace stela::binary
