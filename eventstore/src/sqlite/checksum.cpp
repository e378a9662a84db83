#include "sqlite/checksum.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stela::sqlite {
namespace {

std::uint64_t hash(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

std::int64_t event_checksum(std::int64_t sequence, std::string_view metadata,
                            std::string_view payload) noexcept {
  auto seed = static_cast<std::uint64_t>(sequence);
  if (!metadata.empty()) seed = hash(metadata, seed);
  return static_cast<std::int64_t>(hash(payload, seed));
}

std::int64_t snapshot_checksum(std::initializer_list<std::int64_t> numbers,
                               std::string_view payload) noexcept {
  std::uint64_t seed = 0;
  for (const std::int64_t number : numbers) {
    seed = hash({reinterpret_cast<const char*>(&number), sizeof number}, seed);
  }
  return static_cast<std::int64_t>(hash(payload, seed));
}

}  // namespace stela::sqlite
