// Events of an import, stored in PostgreSQL.
#pragma once

#include "database/event_import.hpp"

namespace stela::postgres {

/// Threads: one at a time.
class EventImport final : public stela::EventImport {
 public:
  void settle_tag_types(database::Connection& connection, std::span<const TagFact> types) override;
  Outcome store(database::Connection& connection, std::span<const ParsedEvent> events) override;
  std::int64_t append_id_checksum(std::string_view append_id, std::int64_t first,
                                  std::int64_t last) const override;
  std::int64_t fact_checksum(std::string_view name, std::string_view value) const override;

 private:
  TagFacts tag_facts_;
};

}  // namespace stela::postgres
