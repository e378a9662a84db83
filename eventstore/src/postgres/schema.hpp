// Making and migrating the tables of a store on PostgreSQL.
#pragma once

#include "database/postgres/connection.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/uuid.hpp>

namespace stela::postgres {

struct Facts {
  Uuid store_id = {};
  Codec codec = Codec::json;
};

/// Brings the tables up to date, and reads the facts of the store or sets them. SchemaMismatch if
/// the tables are newer than this code, or were made by other migrations; UsageError if `options`
/// asks for other facts; StoreBusy if another process migrates for too long.
Facts prepare(Connection& connection, const Options& options);

}  // namespace stela::postgres
