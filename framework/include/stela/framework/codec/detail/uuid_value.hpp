// A Uuid as a field of an event: text in JSON, 16 bytes in portable binary.
#pragma once

#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>

#include <cereal/cereal.hpp>

#include <string>
#include <type_traits>

namespace stela {
namespace detail {

template <class Archive>
concept TextArchive = std::is_base_of_v<cereal::traits::TextArchive, Archive>;

}  // namespace detail

template <detail::TextArchive Archive>
std::string save_minimal(const Archive&, const Uuid& id) {
  return id.to_string();
}
template <detail::TextArchive Archive>
void load_minimal(const Archive&, Uuid& id, const std::string& text) {
  const auto parsed = Uuid::parse(text);
  if (!parsed) throw UsageError{"it isn't a UUID"};
  id = *parsed;
}

template <class Archive>
requires(!detail::TextArchive<Archive>) void save(Archive& archive, const Uuid& id) {
  archive(cereal::binary_data(id.bytes().data(), id.bytes().size()));
}
template <class Archive>
requires(!detail::TextArchive<Archive>) void load(Archive& archive, Uuid& id) {
  Uuid::Bytes bytes;
  archive(cereal::binary_data(bytes.data(), bytes.size()));
  id = Uuid{bytes};
}

}  // namespace stela
