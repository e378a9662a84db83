#include "database/checksum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stela::database {
namespace {

std::uint64_t hash(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

char* put(char* out, std::int64_t number) noexcept {
  auto bytes = std::bit_cast<std::array<char, sizeof number>>(number);
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes.begin(), bytes.end());
  return std::copy(bytes.begin(), bytes.end(), out);
}

char* put(char* out, const Uuid& id) noexcept {
  return std::copy(id.bytes().begin(), id.bytes().end(), out);
}

}  // namespace

std::int64_t checksum_of(std::initializer_list<std::int64_t> numbers,
                         std::initializer_list<std::string_view> texts) {
  std::string fixed(numbers.size() * sizeof(std::int64_t), '\0');
  char* end = fixed.data();
  for (const std::int64_t number : numbers) end = put(end, number);
  std::uint64_t sum = hash(fixed, 0);
  for (const std::string_view text : texts) sum = hash(text, sum);
  return static_cast<std::int64_t>(sum);
}

std::int64_t event_checksum(const StoredEvent& event) noexcept {
  std::array<char, 80> fixed;
  char* end = fixed.data();
  end = put(end, event.sequence.value());
  end = put(end, event.version.value());
  end = put(end, event.schema_version());
  end = put(end, event.publishes() ? 1 : 0);
  end = put(end, event.recorded_at.time_since_epoch().count());
  end = put(end, event.published_before.value());
  end = put(end, event.id);
  end = put(end, event.causation_id);

  std::uint64_t sum = hash({fixed.data(), fixed.size()}, 0);
  sum = hash(event.stream.name(), sum);
  sum = hash(event.type(), sum);
  sum = hash(event.correlation, sum);
  sum = hash(event.metadata, sum);
  return static_cast<std::int64_t>(hash(event.payload, sum));
}

std::uint64_t text_checksum(std::string_view text) noexcept {
  return hash(text, 0);
}

}  // namespace stela::database
