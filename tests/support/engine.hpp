// Stores on the engine of this test run: SQLite, or the one named by STELA_TEST_ENGINE.
#pragma once

#include <stela/eventstore.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace stela::test {

class PostgresServer;

struct EngineOptions {
  std::chrono::milliseconds busy_timeout{5000};
  LogSink* log = &no_log();
  const Clock* clock = &system_clock();
  Keyring* keys = nullptr;
};

/// True if STELA_TEST_ENGINE is "postgres".
bool is_on_postgres();

/// A store without events.
Store open_empty(const EngineOptions& options = {});
/// The same store for the same path, also in a child process: a file, or a schema on a server.
Store open_at(const std::string& path, const EngineOptions& options = {});

/// The arguments by which another program opens that path's store: the path, or a URL and a schema.
std::vector<std::string> location_of(const std::string& path);

/// Runs SQL on that path's store, bypassing Stela. Returns the first column of its rows. Only on
/// PostgreSQL.
std::vector<std::string> run_on_postgres(const std::string& path, const std::string& sql);
/// The same on the caller's own server.
std::vector<std::string> run_on(const PostgresServer& server, const std::string& sql);
/// Makes `forge()`, which adds an event as no SQL of the user's may.
inline constexpr const char* sql_that_makes_forge =
    "CREATE FUNCTION forge() RETURNS text LANGUAGE sql AS $$ INSERT INTO stela.events "
    "SELECT max(sequence) + 1, 77, 1, 0, 0, 0, 1, gen_random_uuid(), NULL, NULL, NULL, '' "
    "FROM stela.events; SELECT '' $$";

}  // namespace stela::test
