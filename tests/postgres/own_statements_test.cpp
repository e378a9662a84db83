// The statements that only PostgreSQL runs give the columns that their files declare: a server says
// so, as their compiler only takes them at their word.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "postgres_sql/calls.hpp"
#include "postgres_sql/event_import.hpp"
#include "postgres_sql/inspection.hpp"
#include "postgres_sql/keys.hpp"
#include "postgres_sql/participants.hpp"
#include "postgres_sql/presence.hpp"
#include "postgres_sql/schema.hpp"
#include "postgres_sql/sessions.hpp"
#include "postgres_sql/settlement.hpp"
#include "postgres_sql/snapshots.hpp"
#include "postgres_sql/status.hpp"
#include "postgres_sql/streams.hpp"
#include "postgres_sql/tags.hpp"
#include "postgres_sql/user_sql.hpp"
#include "projections_sql.hpp"
#include "projections_sql/server_tables.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace stela::postgres::own_statements_test {
namespace {

using ::testing::StartsWith;

/// What an accessor of a column of that type is declared as. Not all types have one.
std::string word_of(Oid of) {
  constexpr Oid name = 19;
  constexpr Oid int4s = 1007;
  constexpr Oid int8s = 1016;
  static const std::map<Oid, std::string> words{
      {type::boolean, "boolean"}, {type::bytes, "blob"},   {type::int2, "integer"},
      {type::int4, "integer"},    {type::int8, "integer"}, {type::oid, "integer"},
      {type::text, "text"},       {type::uuid, "uuid"},    {name, "text"},
      {int4s, "integers"},        {int8s, "integers"}};
  const auto word = words.find(of);
  return word != words.end() ? word->second : "type " + std::to_string(of);
}

/// The columns that the server would give, in the way in which a `Declaration` lists them.
std::string columns_of(Connection& connection, std::string_view sql) {
  const std::string text{sql};
  const Result prepared{PQprepare(connection.handle(), "", text.c_str(), 0, nullptr)};
  if (prepared.is_error()) return PQresultErrorMessage(prepared.get());
  const Result described{PQdescribePrepared(connection.handle(), "")};
  std::string columns;
  for (int at = 0; at < described.columns(); ++at) {
    columns.append(PQfname(described.get(), at)).append(" ");
    columns.append(word_of(PQftype(described.get(), at))).append(" ");
  }
  return columns;
}

std::size_t count_names(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator{folder}) {
    std::ifstream in{file.path()};
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("-- name:")) ++count;
    }
  }
  return count;
}

using Files = std::span<const std::span<const Declaration>>;

/// Has a server say what the statements give. How many there are.
std::size_t compare_all(const test::PostgresServer& server, Files files) {
  Connection connection{{.conninfo = server.url()}};
  std::size_t count = 0;
  for (const auto& declarations : files) {
    count += declarations.size();
    for (const Declaration& each : declarations) {
      // Of one that declares none, nothing is read.
      if (each.columns.empty()) {
        EXPECT_NO_THROW(connection.execute("PREPARE s AS " + std::string{each.sql})) << each.sql;
        connection.execute("DEALLOCATE ALL");
      } else {
        // What comes after them isn't read.
        EXPECT_THAT(columns_of(connection, each.sql), StartsWith(std::string{each.columns}))
            << each.sql;
      }
    }
  }
  return count;
}

TEST(PostgresOwnStatements, GiveTheColumnsThatTheyDeclare) {
  const test::PostgresServer server;
  const Store store = postgres::open(server.url());
  const std::span<const Declaration> files[] = {
      sql::calls_declarations,     sql::event_import_declarations, sql::inspection_declarations,
      sql::keys_declarations,      sql::participants_declarations, sql::presence_declarations,
      sql::schema_declarations,    sql::sessions_declarations,     sql::settlement_declarations,
      sql::snapshots_declarations, sql::status_declarations,       sql::streams_declarations,
      sql::tags_declarations,      sql::user_sql_declarations};
  EXPECT_EQ(compare_all(server, files),
            count_names(STELA_SOURCE_DIR "/eventstore/sql/postgres/statements"));
}

TEST(PostgresOwnStatements, OfProjectionsGiveTheColumnsThatTheyDeclare) {
  namespace sql = projections::sql;
  const test::PostgresServer server;
  Store store = postgres::open(server.url());
  store.database().migrate("projections", sql::migrations, sql::migrations_on_postgres);
  const std::span<const Declaration> files[] = {sql::server_tables_declarations};
  EXPECT_EQ(compare_all(server, files),
            count_names(STELA_SOURCE_DIR "/projections/sql/postgres/statements"));
}

}  // namespace
}  // namespace stela::postgres::own_statements_test
