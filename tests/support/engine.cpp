#include "support/engine.hpp"

#include "support/key_place.hpp"
#include "support/postgres_server.hpp"

#ifdef STELA_TEST_LIBPQ
#include <libpq-fe.h>
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace stela::test {
namespace {

std::optional<PostgresServer> server;

/// One server for all tests of a process and its children. It must start before them.
class StartServer final : public ::testing::Environment {
 public:
  void SetUp() override { server.emplace(); }
  void TearDown() override { server.reset(); }
};

[[maybe_unused]] const auto* const start_server =
    is_on_postgres() ? ::testing::AddGlobalTestEnvironment(new StartServer) : nullptr;

/// Paths differ at their ends.
std::string schema_of(const std::string& path) {
  constexpr std::size_t longest = 40;
  return path.size() > longest ? path.substr(path.size() - longest) : path;
}

Store open_schema(const std::string& schema, const EngineOptions& options) {
  constexpr std::chrono::milliseconds longest{20'000};
  return postgres::open(
      server.value().url(),
      {.schema = schema,
       .busy_timeout = std::clamp(options.busy_timeout, std::chrono::milliseconds{1}, longest),
       .log = options.log,
       .clock = options.clock,
       .keys = options.keys});
}

sqlite::Options for_sqlite(const EngineOptions& options) {
  return {.busy_timeout = options.busy_timeout,
          .log = options.log,
          .clock = options.clock,
          .keys = options.keys};
}

}  // namespace

bool is_on_postgres() {
  const char* const engine = std::getenv("STELA_TEST_ENGINE");
  if (engine == nullptr) return false;
  if (std::string_view{engine} == "postgres") return true;
  throw std::runtime_error{"STELA_TEST_ENGINE is neither empty nor 'postgres'"};
}

Store open_empty(const EngineOptions& options) {
  static int schemas = 0;
  if (is_on_postgres()) return open_schema("store " + std::to_string(++schemas), options);
  return sqlite::open_in_memory(for_sqlite(options));
}

Store open_at(const std::string& path, const EngineOptions& options) {
  if (is_on_postgres()) return open_schema(schema_of(path), options);
  return sqlite::open(path, for_sqlite(options));
}

std::vector<std::string> location_of(const std::string& path) {
  if (is_on_postgres()) return {server.value().url(), schema_of(path)};
  return {path};
}

#ifdef STELA_TEST_LIBPQ

std::vector<std::string> run_at(const std::string& url, const std::string& sql) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection{PQconnectdb(url.c_str()),
                                                                &PQfinish};
  const std::unique_ptr<PGresult, decltype(&PQclear)> result{PQexec(connection.get(), sql.c_str()),
                                                             &PQclear};
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw std::runtime_error{PQerrorMessage(connection.get())};
  }
  std::vector<std::string> rows;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    rows.emplace_back(PQgetisnull(result.get(), row, 0) != 0 ? "NULL"
                                                             : PQgetvalue(result.get(), row, 0));
  }
  return rows;
}

#else

std::vector<std::string> run_at(const std::string&, const std::string&) {
  throw std::runtime_error{"this build has no engine for PostgreSQL"};
}

#endif

std::vector<std::string> run_on(const PostgresServer& on, const std::string& sql) {
  return run_at(on.url(), sql);
}

std::string database_at(const std::string& path) {
  const std::string name =
      schema_of(path.substr(path.find_last_of('/', path.find_last_of('/') - 1)));
  if (run_on(server.value(), "SELECT FROM pg_database WHERE datname = '" + name + "'").empty()) {
    run_on(server.value(), "CREATE DATABASE \"" + name + '"');
  }
  std::string escaped;
  for (const char c : name) escaped += c == '/' ? std::string{"%2F"} : std::string{c};
  return server.value().url(escaped);
}

std::vector<std::string> run_on_postgres(const std::string& path, const std::string& sql) {
  return run_on(server.value(), "SET search_path = \"" + schema_of(path) + "\"; " + sql);
}

}  // namespace stela::test
