// What the codec tests share: values to and from bytes.
#pragma once

#include "support/messages.hpp"

#include <stela/framework/codec/codec.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stela::test {

template <class T>
std::string bytes_of(Codec codec, const T& value) {
  std::string bytes;
  codec::encode(codec, value, bytes);
  return bytes;
}

template <class T>
std::string json_of(const T& value) {
  return bytes_of(Codec::json, value);
}

/// One value as the field `v` of a struct.
template <class T>
struct Box {
  T v{};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(v));
  }
  friend bool operator==(const Box&, const Box&) = default;
};

/// How a value looks as the field of a struct: "[1,2]".
template <class T>
std::string form_of(T value) {
  const std::string text = json_of(Box<T>{std::move(value)});
  constexpr std::string_view before = R"({"v":)";
  return text.substr(before.size(), text.size() - before.size() - 1);
}

/// The value whose form is `form`.
template <class T>
T from_form(std::string_view form) {
  std::string text = R"({"v":)";
  text.append(form).append("}");
  return codec::decode<Box<T>>(Codec::json, text).v;
}

/// Why `text` isn't a T.
template <class T>
std::string json_refusal(std::string_view text) {
  return message_of<codec::DecodeError>([&] { (void)codec::decode<T>(Codec::json, text); });
}
/// Why `form` isn't the form of a T, as a field `v`.
template <class T>
std::string form_refusal(std::string_view form) {
  return message_of<codec::DecodeError>([&] { (void)from_form<T>(form); });
}
template <class T>
std::string binary_refusal(std::string_view bytes) {
  return message_of<codec::DecodeError>(
      [&] { (void)codec::decode<T>(Codec::portable_binary, bytes); });
}
template <class T>
std::string encode_refusal(Codec codec, const T& value) {
  return message_of<codec::EncodeError>([&] { (void)bytes_of(codec, value); });
}

/// A list whose length is the depth of its payload. Whoever includes this includes cereal's
/// memory.hpp.
struct Nested {
  std::unique_ptr<Nested> next;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(next));
  }
};

inline Nested nested(int depth) {
  Nested list;
  for (int i = 1; i < depth; ++i) {
    auto inner = std::make_unique<Nested>(std::move(list));
    list.next = std::move(inner);
  }
  return list;
}

/// Counts how many of it were made.
struct Witness {
  static inline std::int64_t made = 0;

  bool v = false;
  std::array<char, 240> rest{};

  Witness() { ++made; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(v));
  }
};

/// Notes the most bytes that were asked for at once.
template <class T>
struct CountingBytes : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = CountingBytes<U>;
  };
  static inline std::size_t most = 0;

  T* allocate(std::size_t count) {
    most = std::max(most, count * sizeof(T));
    return std::allocator<T>::allocate(count);
  }
};

}  // namespace stela::test
