// Lists the fields of a value, each with its path, kind and value.
#pragma once

#include <stela/framework/codec/detail/json_archive.hpp>
#include <stela/framework/codec/detail/shapes.hpp>
#include <stela/testing/export.hpp>

#include <cereal/cereal.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace stela::testing {

struct Field {
  /// "lines[1].price".
  std::string path;
  /// "int64 = 500".
  std::string value;

  friend bool operator==(const Field&, const Field&) = default;
};

/// A cereal archive that lists the fields that a `serialize` names. Threads: one at a time.
class STELA_TESTING_EXPORT FieldsArchive
    : public cereal::OutputArchive<FieldsArchive, cereal::AllowEmptyClassElision>,
      public cereal::traits::TextArchive {
 public:
  FieldsArchive() : cereal::OutputArchive<FieldsArchive, cereal::AllowEmptyClassElision>{this} {}

  /// The name must stay valid until its value begins.
  void set_next_name(std::string_view name) noexcept { next_name_ = name; }
  void begin_node(bool is_list);
  void make_list(std::size_t size);
  void end_node();
  void add(std::string value);
  void add_text(std::string_view text);
  void add_number(double value, std::string_view kind);

  std::vector<Field> take() && { return std::move(fields_); }

 private:
  struct Node {
    std::string path;
    bool is_list = false;
    std::size_t count = 0;
  };

  /// The path of the next value.
  std::string next_path();

  std::vector<Field> fields_;
  std::vector<Node> nodes_;
  std::string_view next_name_;
};

}  // namespace stela::testing

namespace stela::testing {

template <class T>
constexpr bool is_list = std::is_bounded_array_v<T> || codec::is_fixed_array<T>;

template <class T>
constexpr bool is_node = is_list<T> || (json::is_node<T> && std::is_class_v<T>) ||
                         codec::is_nullable<T> || codec::is_time<T> || codec::is_bitset<T>;

template <class T>
void prologue(FieldsArchive& archive, const T&) {
  if constexpr (is_node<T>) archive.begin_node(is_list<T>);
}
template <class T>
void epilogue(FieldsArchive& archive, const T&) {
  if constexpr (is_node<T>) archive.end_node();
}

template <class T>
requires std::is_arithmetic_v<T>
void save(FieldsArchive& archive, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    archive.add(value ? "bool = true" : "bool = false");
  } else if constexpr (std::is_floating_point_v<T>) {
    archive.add_number(static_cast<double>(value), std::is_same_v<T, float> ? "float" : "double");
  } else {
    archive.add((std::is_signed_v<T> ? "int" : "uint") + std::to_string(sizeof(T) * 8) + " = " +
                std::to_string(value));
  }
}
inline void save(FieldsArchive& archive, const std::string& text) {
  archive.add_text(text);
}
template <class T, auto Whose>
void save(FieldsArchive& archive, const Personal<T, Whose>& value) {
  value.if_open([&](const T& open) { archive(open); });
}

template <class T>
void save(FieldsArchive& archive, const cereal::NameValuePair<T>& pair) {
  archive.set_next_name(pair.name);
  archive(pair.value);
}
template <class T>
void save(FieldsArchive& archive, const cereal::SizeTag<T>& tag) {
  archive.make_list(static_cast<std::size_t>(tag.size));
}

template <codec::NamedEnum E>
std::string save_minimal(const FieldsArchive&, const E& value) {
  return codec::name_of(value).value_or("");
}

// In an order that doesn't depend on the container's history.
template <class Container>
void save_sorted(FieldsArchive& archive, const Container& container) {
  archive.make_list(container.size());
  for (const auto* element : codec::in_encoded_order<json::OutputArchive>(container)) {
    codec::archive_element(archive, *element);
  }
}
template <class Key, class Hash, class Equal, class Allocator>
void save(FieldsArchive& archive, const std::unordered_set<Key, Hash, Equal, Allocator>& set) {
  save_sorted(archive, set);
}
template <class Key, class Hash, class Equal, class Allocator>
void save(FieldsArchive& archive, const std::unordered_multiset<Key, Hash, Equal, Allocator>& set) {
  save_sorted(archive, set);
}
template <template <class...> class Map, class... Args>
requires(codec::Unordered<Map<Args...>>) void save(FieldsArchive& archive,
                                                   const Map<Args...>& map) {
  save_sorted(archive, map);
}

template <class T>
std::vector<Field> fields_of(const T& value) {
  FieldsArchive archive;
  archive(value);
  return std::move(archive).take();
}

}  // namespace stela::testing
