// The links of an event: the keys under which the index lists it.
#pragma once

#include "database/inspection.hpp"
#include "operations_sql/links.hpp"

#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::links {

/// The first half of a UUID, which begins with its time, so that new links are adjacent; for
/// another text, its XXH3-64. docs/schema.md defines it as a format.
std::int64_t link_of(const Uuid& id) noexcept;
std::int64_t link_of(std::string_view id) noexcept;

/// Nil unless it has 16 bytes.
Uuid uuid_of(std::string_view blob) noexcept;

/// The creation time of a UUIDv7, to the millisecond; `Timestamp::min()` for others.
Timestamp time_of(const Uuid& id) noexcept;

/// A link and its event.
using Pair = std::pair<std::int64_t, std::int64_t>;

/// The index entries of some events, one for each link.
class Pairs {
 public:
  /// Adds the links of an event; ids that don't have 16 bytes are skipped.
  void add(std::int64_t sequence, Timestamp recorded_at, std::string_view event_id,
           std::string_view correlation_id, std::string_view causation_id);
  void add(const operations::sql::carrier_row& row) {
    add(row.sequence(), row.recorded_at(), row.event_id(), row.correlation_id(),
        row.causation_id());
  }
  /// In index order, without duplicates.
  const std::vector<Pair>& sorted();
  /// As JSON: [[link, sequence], …].
  std::string to_json();

 private:
  std::vector<Pair> pairs_;
};

/// The check of the links index, for verify.
class Check final : public IntegrityCheck {
 public:
  std::string_view name() const noexcept override { return "links"; }
  void run(database::Inspection& inspection) override;
};

}  // namespace stela::links
