#include <stela/outbox/partitioner.hpp>

#include <boost/crc.hpp>

#include <cstdio>

namespace stela {
namespace {

class ByStream final : public Partitioner {
 public:
  std::string_view name() const noexcept override { return "stream"; }
  std::string_view key(const PartitionedEvent& event, std::string&) const override {
    return event.stream.name();
  }
};

}  // namespace

const Partitioner& by_stream() noexcept {
  static const ByStream partitioner;
  return partitioner;
}

PartitionId PartitionId::of(std::string_view key, int count) noexcept {
  return count <= 1 ? PartitionId{0} : of_hash(hash(key), count);
}

std::uint32_t PartitionId::hash(std::string_view key) noexcept {
  boost::crc_32_type crc;
  crc.process_bytes(key.data(), key.size());
  return crc.checksum();
}

std::string PartitionId::label() const {
  if (number == 0) return "all";
  char text[16];
  std::snprintf(text, sizeof text, "p%02d", number - 1);
  return text;
}

}  // namespace stela
