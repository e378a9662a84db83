// Pages of events from an SQLite database.
#pragma once

#include "ledger/pages.hpp"
#include "sqlite/kinds.hpp"
#include "sqlite/reading.hpp"

#include <memory>

namespace stela::sqlite {

std::unique_ptr<ledger::Pages> make_pages(Reading& reading, KindTable& kinds);

}  // namespace stela::sqlite
