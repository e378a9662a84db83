// Reads events by sequence, for other modules.
#pragma once

#include "database/event_reader.hpp"
#include "postgres/event_rows.hpp"

#include <limits>

namespace stela::postgres {

class EventReader final : public database::EventReader {
 public:
  explicit EventReader(KindTable& kinds) noexcept : kinds_{kinds} {}

  /// The sequences are passed as one array.
  std::int64_t widest_gap() const noexcept override {
    return std::numeric_limits<std::int64_t>::max();
  }
  void read(database::Connection& connection, std::span<const std::int64_t> sequences,
            FunctionRef<bool(const database::EventRow&)> use) override;
  void read_range(database::Connection& connection, const database::RowRange& range,
                  FunctionRef<bool(const database::EventRow&)> use) override;
  bool fill(database::Connection& connection, std::int64_t first, EventPage& page) override;
  void trim() noexcept override { names_.trim(); }
  const StreamId& stream(database::Connection& connection, std::int64_t number) override;

 private:
  KindTable& kinds_;
  StreamNames names_;
};

}  // namespace stela::postgres
