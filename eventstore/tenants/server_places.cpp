// Tenants' schemas of a PostgreSQL database.
#include "database/postgres/connection.hpp"
#include "database/postgres/sql_text.hpp"
#include "postgres/server_session.hpp"
#include "postgres_sql/schema.hpp"
#include "tenants/places.hpp"

namespace stela::tenants {
namespace {

std::unique_ptr<postgres::Connection> connect(const std::string& conninfo) {
  auto made =
      std::make_unique<postgres::Connection>(postgres::ConnectionOptions{.conninfo = conninfo});
  postgres::set_up(*made);
  return made;
}

}  // namespace

std::vector<std::string> names_on_server(const std::string& conninfo) {
  const auto connection = connect(conninfo);
  std::vector<std::string> names;
  auto schemas = connection->rows(postgres::sql::schemas_with_ledger{});
  const std::string prefix = schema_of({});
  while (schemas.step()) {
    const std::string_view name = schemas.name();
    if (name.starts_with(prefix)) names.emplace_back(name.substr(prefix.size()));
  }
  return names;
}

void remove_from_server(const std::string& conninfo, std::string_view tenant) {
  const auto connection = connect(conninfo);
  for (const char* const ending : {"", "_app"}) {
    connection->execute("DROP SCHEMA IF EXISTS " + postgres::quoted(schema_of(tenant) + ending) +
                        " CASCADE");
  }
}

}  // namespace stela::tenants
