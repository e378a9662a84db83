// Stores on the engine that this run of the tests is about: SQLite, or what STELA_TEST_ENGINE
// names.
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

/// A store that has no events yet.
Store open_empty(const EngineOptions& options = {});
/// The same store for the same path, also in a child process: a file, or on a server a schema.
Store open_at(const std::string& path, const EngineOptions& options = {});

/// The store of that path for another program: the path, or on a server a URL and a schema.
std::vector<std::string> location_of(const std::string& path);

/// SQL behind Stela's back, on the store of that path, by its own names; the first column of its
/// rows. Only on PostgreSQL.
std::vector<std::string> run_on_postgres(const std::string& path, const std::string& sql);
/// The same on a server of the caller's.
std::vector<std::string> run_on(const PostgresServer& server, const std::string& sql);

}  // namespace stela::test
