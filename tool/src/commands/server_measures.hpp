// The state of a PostgreSQL server, for checks and doctor.
#pragma once

#include "commands/measures.hpp"
#include "store_session.hpp"

#include <stela/eventstore/detail/postgres_status.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace stela::tool {

/// A transaction this old keeps dead rows of the outbox alive.
inline constexpr std::chrono::minutes long_transaction{10};
inline constexpr std::chrono::seconds long_lag{60};
/// Longer than any lock that a migration takes.
inline constexpr std::chrono::seconds long_lock{2};

/// The reason why commits don't become durable. Empty if they do.
std::string problem_of_commits(const postgres::ServerStatus& status);

/// The reason why the database takes no writes, and the remedy. Both are empty if it takes them.
struct StoreTrouble {
  std::string what = {};
  std::string remedy = {};
};
StoreTrouble trouble_of(const postgres::ServerStatus& status, const DatabasePlace& place);
/// For a file, examines it and tries to write.
StoreTrouble trouble_of_writing(StoreSession& session);

/// Measures whether the database can be written to, then the lag of the standbys and the age of the
/// oldest transaction.
std::vector<Measure> measure_server(StoreSession& session);
/// Measures whether the database can be written to, on either engine.
Measure measure_writing(StoreSession& session);

}  // namespace stela::tool
