#include "tables/placement.hpp"

#include "outbox_sql/partitions.hpp"

#include <stela/framework/error.hpp>

#include <array>
#include <optional>

namespace stela::outbox {

namespace {

std::string registered_name(database::Connection& connection) {
  auto row = connection.rows(sql::partitioner_name{});
  return row.step() ? std::string{row.detail()} : std::string{};
}

}  // namespace

bool Placement::knows_partitioner() {
  return registered_name(connection_) == partitioner_.name();
}

void Placement::require_partitioner() {
  const std::string name = registered_name(connection_);
  if (name == partitioner_.name()) return;
  throw UsageError{"this database's outbox is partitioned by '" + name + "', and '" +
                   std::string{partitioner_.name()} +
                   "' was given; do this from a program that brings its partitioner"};
}

PartitionId Placement::find(GlobalSequence sequence, std::int64_t stream, int partition_count) {
  if (partition_count <= 1) return PartitionId::at(0, 1);
  // The default needs no event, so a damaged event keeps its place.
  if (&partitioner_ == &by_stream()) {
    return PartitionId::of(events_->stream(connection_, stream).name(), partition_count);
  }
  std::optional<PartitionId> found;
  const std::array sequences{sequence.value()};
  events_->read(connection_, sequences, [&](const database::EventRow& row) {
    if (row.event == nullptr) throw CorruptEvent{row.problem};
    found = PartitionId::of(partitioner_.key(PartitionedEvent::of(*row.event), scratch_),
                            partition_count);
    return false;
  });
  if (found) return *found;
  throw CorruptEvent{"event " + std::to_string(sequence.value()) + " doesn't exist"};
}

}  // namespace stela::outbox
