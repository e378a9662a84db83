// Turns values into the bytes that a store keeps, and back.
#pragma once

#include <stela/framework/codec/binary_archive.hpp>
#include <stela/framework/codec/json_archive.hpp>
#include <stela/framework/export.hpp>

#include <cereal/types/string.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace stela {

/// How a store keeps payloads: a fact of the database, chosen when it is made.
enum class Codec : std::uint8_t { json, portable_binary };

STELA_FRAMEWORK_EXPORT std::string_view to_string(Codec codec) noexcept;

namespace codec {

/// The largest payload that is written or read.
inline constexpr std::size_t max_payload_size = 64 * 1024 * 1024;

template <class T>
concept Serializable = std::is_empty_v<T> ||
    (cereal::traits::is_output_serializable<T, json::OutputArchive>::value&&
         cereal::traits::is_input_serializable<T, json::InputArchive>::value&&
             cereal::traits::is_output_serializable<T, binary::OutputArchive>::value&&
                 cereal::traits::is_input_serializable<T, binary::InputArchive>::value);

/// Throws the EncodeError or DecodeError for what is being handled: called in a catch (...).
[[noreturn]] STELA_FRAMEWORK_EXPORT void rethrow_as_encode_error();
[[noreturn]] STELA_FRAMEWORK_EXPORT void rethrow_as_decode_error();
STELA_FRAMEWORK_EXPORT void check_size(std::size_t size);

/// Appends the bytes of `value`; EncodeError if it can't be written.
template <Serializable T>
void encode(Codec codec, const T& value, std::string& out) try {
  const std::size_t begin = out.size();
  if (codec == Codec::json) {
    json::OutputArchive archive{out};
    archive(value);
  } else {
    binary::OutputArchive archive{out};
    archive(value);
  }
  check_size(out.size() - begin);
} catch (...) {
  rethrow_as_encode_error();
}

/// DecodeError, and nothing else, on bytes that aren't a T.
template <Serializable T>
void decode(Codec codec, std::string_view bytes, T& value) try {
  check_size(bytes.size());
  if (codec == Codec::json) {
    json::Reader reader{bytes};
    json::InputArchive archive{reader};
    archive(value);
    reader.finish();
  } else {
    binary::InputArchive archive{bytes};
    archive(value);
    archive.finish();
  }
} catch (...) {
  rethrow_as_decode_error();
}

template <Serializable T>
T decode(Codec codec, std::string_view bytes) {
  T value{};
  decode(codec, bytes, value);
  return value;
}

}  // namespace codec
}  // namespace stela
