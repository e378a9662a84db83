// What a PostgreSQL server says of itself, as checks and doctor judge it.
#pragma once

#include "commands/measures.hpp"
#include "store_session.hpp"

#include <stela/eventstore/detail/postgres_status.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace stela::tool {

/// Dead rows of the outbox stay for as long.
inline constexpr std::chrono::minutes long_transaction{10};
inline constexpr std::chrono::seconds long_lag{60};
/// A migration locks a table for less.
inline constexpr std::chrono::seconds long_lock{2};

/// Why no commit becomes durable; empty if commits do.
std::string problem_of_commits(const postgres::ServerStatus& status);

/// Why the database takes no writes, and what ends that; both empty if it takes them.
struct StoreTrouble {
  std::string what = {};
  std::string remedy = {};
};
StoreTrouble trouble_of(const postgres::ServerStatus& status, const DatabasePlace& place);
/// Of a file: what can be seen, and what writing meets.
StoreTrouble trouble_of_writing(StoreSession& session);

/// Whether the database can be written to, first; then the lag of the standbys and the age of the
/// oldest transaction.
std::vector<Measure> measure_server(StoreSession& session);
/// Whether the database can be written to, on whichever engine it is.
Measure measure_writing(StoreSession& session);

}  // namespace stela::tool
