// Pages of events from a PostgreSQL server.
#pragma once

#include "ledger/pages.hpp"
#include "postgres/kinds.hpp"
#include "postgres/reading.hpp"

#include <memory>

namespace stela::postgres {

std::unique_ptr<ledger::Pages> make_pages(Reading& reading, KindTable& kinds);

}  // namespace stela::postgres
