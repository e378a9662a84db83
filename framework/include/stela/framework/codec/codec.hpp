// Converts values to the bytes in a store, and back.
#pragma once

#include <stela/framework/codec/detail/binary_archive.hpp>
#include <stela/framework/codec/detail/json_archive.hpp>
#include <stela/framework/codec/detail/uuid_value.hpp>
#include <stela/framework/export.hpp>

// Types that most events use, included here for convenience.
#include <cereal/types/array.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace stela {

/// How a store encodes payloads. A fact of the database, chosen when it is created.
enum class Codec : std::uint8_t { json, portable_binary };

STELA_FRAMEWORK_EXPORT std::string_view to_string(Codec codec) noexcept;

/// How payloads are read: with the keys for their personal fields, or without.
struct Reading {
  // NOLINTNEXTLINE: a codec alone reads, without keys.
  Reading(Codec with, Keyring* and_keys = nullptr) noexcept : codec{with}, keys{and_keys} {}

  Codec codec;
  Keyring* keys;
};

namespace codec {

/// The size limit of a payload, for writing and reading.
inline constexpr std::size_t max_payload_size = std::size_t{64} * 1024 * 1024;
inline constexpr std::string_view too_large = "the payload is larger than 64 MiB";

template <class T>
concept Serializable = std::is_empty_v<T> ||
    (cereal::traits::is_output_serializable<T, json::OutputArchive>::value&&
         cereal::traits::is_input_serializable<T, json::InputArchive>::value&&
             cereal::traits::is_output_serializable<T, binary::OutputArchive>::value&&
                 cereal::traits::is_input_serializable<T, binary::InputArchive>::value);

/// Call it in a catch (...). Rethrows the current exception as an EncodeError or DecodeError.
/// `path` says where it happened.
[[noreturn]] STELA_FRAMEWORK_EXPORT void rethrow_as_encode_error(const std::string& path);
[[noreturn]] STELA_FRAMEWORK_EXPORT void rethrow_as_decode_error(const std::string& path);

/// Encodes or decodes with one pair of archives. The archive knows its position.
template <class Archive, class T>
void write_with(Archive& archive, const T& value) {
  try {
    archive(value);
    archive.finish();
  } catch (...) {
    rethrow_as_encode_error(archive.path());
  }
}
template <class Archive, class T>
void read_with(Archive& archive, T& value) {
  try {
    archive(value);
    archive.finish();
  } catch (...) {
    rethrow_as_decode_error(archive.path());
  }
}

/// Appends the bytes of `value`. EncodeError if it can't be encoded; `out` is unchanged then.
/// Without `sealing`, personal fields are written as "(personal)".
template <Serializable T>
void encode(Codec codec, const T& value, std::string& out, Sealing* sealing = nullptr) {
  const std::size_t begin = out.size();
  try {
    if (codec == Codec::json) {
      json::OutputArchive archive{out, sealing};
      write_with(archive, value);
    } else {
      binary::OutputArchive archive{out, sealing};
      write_with(archive, value);
    }
    if (out.size() - begin > max_payload_size) throw EncodeError{std::string{too_large}};
  } catch (...) {
    out.resize(begin);
    throw;
  }
}

/// DecodeError if the bytes aren't a T. std::bad_alloc if memory is short; the bytes may be valid
/// then. Without `opening`, personal fields stay sealed.
template <Serializable T>
void decode(Codec codec, std::string_view bytes, T& value, const Opening* opening = nullptr) {
  if (bytes.size() > max_payload_size) throw DecodeError{std::string{too_large}};
  if (codec == Codec::json) {
    json::InputArchive archive{bytes, opening};
    read_with(archive, value);
  } else {
    binary::InputArchive archive{bytes, opening};
    read_with(archive, value);
  }
}

template <Serializable T>
T decode(Codec codec, std::string_view bytes, const Opening* opening = nullptr) {
  T value{};
  decode(codec, bytes, value, opening);
  return value;
}

}  // namespace codec
}  // namespace stela
