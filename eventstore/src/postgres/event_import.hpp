// Events of an import, stored in PostgreSQL.
#pragma once

#include "import_port.hpp"

namespace stela::postgres {

/// Threads: one at a time.
class EventImport final : public stela::EventImport {
 public:
  Outcome store(database::Connection& connection, std::span<const ParsedEvent> events) override;
};

}  // namespace stela::postgres
