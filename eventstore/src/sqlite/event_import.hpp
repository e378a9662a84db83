// Events of an import, stored in SQLite.
#pragma once

#include "database/event_import.hpp"
#include "sqlite/core.hpp"
#include "sqlite/kind_blocks.hpp"
#include "sqlite/stream_heads.hpp"

namespace stela::sqlite {

/// Threads: one at a time.
class EventImport final : public stela::EventImport {
 public:
  explicit EventImport(KindTable& kinds) noexcept : kinds_{kinds} {}
  void settle_tag_types(database::Connection& connection, std::span<const TagFact> types) override;
  Outcome store(database::Connection& connection, std::span<const ParsedEvent> events) override;
  std::int64_t append_id_checksum(std::string_view append_id, std::int64_t first,
                                  std::int64_t last) const override;
  std::int64_t fact_checksum(std::string_view name, std::string_view value) const override;

 private:
  StreamHead& head_of(Connection& connection, const StreamId& stream);
  void store(Connection& connection, StreamHead& head, const ParsedEvent& event);

  KindTable& kinds_;
  StreamHeads heads_;
  KindBlocks kind_blocks_;
  TagFacts tag_facts_;
};

}  // namespace stela::sqlite
