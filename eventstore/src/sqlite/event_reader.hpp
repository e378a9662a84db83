// Reads events by sequence, for other modules.
#pragma once

#include "database/event_reader.hpp"
#include "sqlite/event_rows.hpp"

namespace stela::sqlite {

class EventReader final : public database::EventReader {
 public:
  explicit EventReader(KindTable& kinds) noexcept : kinds_{kinds} {}

  /// Reading a few extra events costs less than another statement.
  std::int64_t widest_gap() const noexcept override { return 3; }
  void read(database::Connection& connection, std::span<const std::int64_t> sequences,
            FunctionRef<bool(const database::EventRow&)> use) override;
  void read_range(database::Connection& connection, const database::RowRange& range,
                  FunctionRef<bool(const database::EventRow&)> use) override;
  bool fill(database::Connection& connection, std::int64_t first, EventPage& page) override;
  void trim() noexcept override { names_.trim(); }
  const StreamId& stream(database::Connection& connection, std::int64_t number) override;

 private:
  void read_rows(database::Connection& connection, const database::RowRange& range,
                 FunctionRef<bool(std::int64_t)> is_wanted,
                 FunctionRef<bool(const database::EventRow&)> use);

  KindTable& kinds_;
  StreamNames names_;
};

}  // namespace stela::sqlite
