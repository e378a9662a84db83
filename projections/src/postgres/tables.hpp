// The tables of builds on PostgreSQL.
#pragma once

#include "build_tables.hpp"

#include <memory>

namespace stela::projections {

bool is_postgres(const database::Connection& connection) noexcept;
const Tables& postgres_tables() noexcept;
std::unique_ptr<BuildModel> make_postgres_model(const Build& build);

}  // namespace stela::projections
