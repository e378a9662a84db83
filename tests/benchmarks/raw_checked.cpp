#include "raw_checked.hpp"

#include "shop.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stela::bench {
namespace {

enum Column : int {
  sequence,
  stream,
  version,
  kind,
  recorded_at,
  event_id,
  correlation_id,
  causation_id,
  published_before,
  metadata,
  checksum,
  payload,
};

std::uint64_t hash(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

RawCheckedReader::RawCheckedReader(const std::string& path)
    : database_{path, {}},
      all_{database_,
           "SELECT sequence, stream, version, kind, recorded_at, event_id, correlation_id, "
           "causation_id, published_before, metadata, checksum, payload "
           "FROM events ORDER BY sequence"} {
  RawStatement streams{database_, "SELECT stream, name FROM streams"};
  while (streams.step()) streams_.emplace(streams.integer(0), streams.bytes(1));
  RawStatement kinds{database_, "SELECT kind, type, version, publishes FROM event_kinds"};
  while (kinds.step()) {
    kinds_.emplace(kinds.integer(0),
                   Kind{std::string{kinds.bytes(1)}, kinds.integer(2), kinds.integer(3)});
    if (kinds.bytes(1) == LineAdded::event_type.name) added_kind_ = kinds.integer(0);
  }
}

void RawCheckedReader::check() {
  kind_ = all_.integer(kind);
  payload_ = all_.bytes(payload);
  const Kind& its_kind = kinds_.at(kind_);
  const std::string& its_stream = streams_.at(all_.integer(stream));
  const std::string_view id = all_.bytes(event_id);
  const std::string_view cause = all_.bytes(causation_id);

  // The machines that this runs on are little-endian, as the format is.
  const std::array numbers{all_.integer(sequence),    all_.integer(version),
                           its_kind.schema_version,   its_kind.publishes,
                           all_.integer(recorded_at), all_.integer(published_before)};
  std::array<char, sizeof numbers + 32> fixed{};
  std::memcpy(fixed.data(), numbers.data(), sizeof numbers);
  std::memcpy(fixed.data() + sizeof numbers, id.data(), id.size());
  if (!cause.empty()) {
    std::memcpy(fixed.data() + sizeof numbers + 16, cause.data(), cause.size());
  }
  std::uint64_t sum = hash({fixed.data(), fixed.size()}, 0);
  sum = hash(its_stream, sum);
  sum = hash(its_kind.type, sum);
  sum = hash(all_.bytes(correlation_id), sum);
  sum = hash(all_.bytes(metadata), sum);
  sum = hash(payload_, sum);
  if (static_cast<std::int64_t>(sum) != all_.integer(checksum)) {
    throw std::runtime_error{"event " + std::to_string(all_.integer(sequence)) + " is damaged"};
  }
}

}  // namespace stela::bench
