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

RawRowCheck::RawRowCheck(RawDatabase& database)
    : name_{database, "SELECT name FROM streams WHERE stream = ?1"} {
  RawStatement streams{database, "SELECT stream, name FROM streams"};
  while (streams.step()) streams_.emplace(streams.integer(0), streams.bytes(1));
  RawStatement kinds{database, "SELECT kind, type, version, publishes FROM event_kinds"};
  while (kinds.step()) {
    kinds_.emplace(kinds.integer(0),
                   Kind{std::string{kinds.bytes(1)}, kinds.integer(2), kinds.integer(3)});
  }
}

const std::string& RawRowCheck::stream_name(std::int64_t stream) {
  const auto known = streams_.find(stream);
  if (known != streams_.end()) return known->second;
  name_.bind(1, stream);
  name_.step();
  std::string name{name_.bytes(0)};
  name_.reset();
  return streams_.emplace(stream, std::move(name)).first->second;
}

std::int64_t RawRowCheck::kind_of(std::string_view type) const {
  for (const auto& [number, kind] : kinds_) {
    if (kind.type == type) return number;
  }
  throw std::logic_error{"no event is of type " + std::string{type}};
}

std::int64_t RawRowCheck::checksum(const RawEvent& event, std::string_view stream_name,
                                   std::int64_t number) const {
  const Kind& its_kind = kinds_.at(number);
  // The machines that this runs on are little-endian, as the format is.
  const std::array numbers{event.sequence,     event.version,     its_kind.schema_version,
                           its_kind.publishes, event.recorded_at, event.published_before};
  std::array<char, sizeof numbers + 32> fixed{};
  std::memcpy(fixed.data(), numbers.data(), sizeof numbers);
  std::memcpy(fixed.data() + sizeof numbers, event.event_id.data(), event.event_id.size());
  if (!event.causation_id.empty()) {
    std::memcpy(fixed.data() + sizeof numbers + 16, event.causation_id.data(),
                event.causation_id.size());
  }
  std::uint64_t sum = hash({fixed.data(), fixed.size()}, 0);
  sum = hash(stream_name, sum);
  sum = hash(its_kind.type, sum);
  sum = hash(event.correlation_id, sum);
  sum = hash(event.metadata, sum);
  return static_cast<std::int64_t>(hash(event.payload, sum));
}

void RawRowCheck::check(const RawStatement& row) {
  kind_ = row.integer(Column::kind);
  payload_ = row.bytes(Column::payload);
  const RawEvent event{.sequence = row.integer(Column::sequence),
                       .version = row.integer(Column::version),
                       .recorded_at = row.integer(Column::recorded_at),
                       .published_before = row.integer(Column::published_before),
                       .event_id = row.bytes(Column::event_id),
                       .correlation_id = row.bytes(Column::correlation_id),
                       .causation_id = row.bytes(Column::causation_id),
                       .metadata = row.bytes(Column::metadata),
                       .payload = payload_};
  if (checksum(event, stream_name(row.integer(Column::stream)), kind_) !=
      row.integer(Column::checksum)) {
    throw std::runtime_error{"event " + std::to_string(event.sequence) + " is damaged"};
  }
}

std::int64_t raw_tags_checksum(std::int64_t sequence, std::int64_t part, std::string_view tags) {
  const std::array numbers{sequence, part};
  const std::uint64_t sum =
      hash({reinterpret_cast<const char*>(numbers.data()), sizeof numbers}, 0);
  return static_cast<std::int64_t>(hash(tags, sum));
}

RawCheckedReader::RawCheckedReader(const std::string& path)
    : database_{path, {}},
      all_{database_,
           (std::string{"SELECT "} + raw_event_columns + " FROM events AS e ORDER BY e.sequence")
               .c_str()},
      rows_{database_},
      added_kind_{rows_.kind_of(LineAdded::event_type.name)} {}

}  // namespace stela::bench
