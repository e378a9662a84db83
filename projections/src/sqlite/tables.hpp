// The tables of builds in SQLite databases.
#pragma once

#include "build_tables.hpp"

#include "database/database.hpp"

#include <memory>

namespace stela::projections {

const Tables& sqlite_tables() noexcept;

/// Null if the database isn't SQLite.
std::unique_ptr<BuildModel> make_sqlite_model(database::Database& database, const Build& build);

}  // namespace stela::projections
