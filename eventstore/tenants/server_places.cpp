// Tenants' schemas of a PostgreSQL database.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "database/postgres/sql_text.hpp"
#include "postgres/server_session.hpp"
#include "postgres_sql/schema.hpp"
#include "tenants/places.hpp"

#include <algorithm>
#include <utility>

namespace stela::tenants {
namespace {

std::unique_ptr<postgres::Connection> connect(const std::string& conninfo) {
  auto made =
      std::make_unique<postgres::Connection>(postgres::ConnectionOptions{.conninfo = conninfo});
  postgres::set_up(*made);
  return made;
}

/// The names of all tenants with a schema, sorted.
std::vector<std::string> names_at(postgres::Connection& connection) {
  std::vector<std::string> names;
  auto schemas = connection.rows(postgres::sql::schemas_with_ledger{});
  const std::string prefix = schema_of({});
  while (schemas.step()) {
    const std::string_view name = schemas.name();
    if (name.starts_with(prefix)) names.emplace_back(name.substr(prefix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct ReadModel {
  std::string schema;
  bool may_drop = false;
};

std::vector<ReadModel> read_models_of(postgres::Connection& connection, std::string_view tenant) {
  std::vector<ReadModel> found;
  const std::string store = schema_of(tenant);
  auto schemas = connection.rows(postgres::sql::read_models{.store = store});
  while (schemas.step()) found.push_back({std::string{schemas.name()}, schemas.may_drop()});
  return found;
}

class ServerActivity final : public Activity {
 public:
  explicit ServerActivity(std::string conninfo) : conninfo_{std::move(conninfo)} {}

  /// Only events count: what operators change is seen at the next look at the tenant.
  std::vector<Stamp> look(std::span<const std::string> tenants) override {
    if (connection_ == nullptr || !connection_->is_alive()) connection_ = connect(conninfo_);
    const std::vector<std::string> there = names_at(*connection_);
    std::vector<Stamp> stamps(tenants.size());
    std::string sql;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      if (!std::binary_search(there.begin(), there.end(), tenants[i])) continue;
      if (!sql.empty()) sql += " UNION ALL ";
      sql += "SELECT " + std::to_string(i) + "::bigint, coalesce(max(sequence), 0) + 1 FROM " +
             postgres::quoted(schema_of(tenants[i])) + ".events";
    }
    if (sql.empty()) return stamps;
    const postgres::Result found = connection_->query(sql, {}, "looking for tenants' events");
    for (int row = 0; row < found.rows(); ++row) {
      stamps[static_cast<std::size_t>(found.integer(row, 0))][0] = found.integer(row, 1);
    }
    return stamps;
  }

 private:
  const std::string conninfo_;
  std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace

std::unique_ptr<Activity> watch_server(const std::string& conninfo) {
  return std::make_unique<ServerActivity>(conninfo);
}

std::vector<std::string> names_on_server(const std::string& conninfo) {
  return names_at(*connect(conninfo));
}

Schemas check_schemas(const std::string& conninfo, std::string_view tenant) {
  const auto connection = connect(conninfo);
  const auto object_in = [&](const std::string& schema) {
    auto found = connection->rows(postgres::sql::object_in{.schema = schema});
    return found.step() ? std::string{found.name()} : std::string{};
  };
  const std::string schema = schema_of(tenant);
  const std::vector<std::string> stores = names_at(*connection);
  const bool is_there = std::binary_search(stores.begin(), stores.end(), tenant);
  if (const std::string object = object_in(schema); !is_there && !object.empty()) {
    throw SchemaMismatch{"the schema '" + schema + "' isn't a store, and has the " + object +
                         "; it is left as it is: move it away"};
  }
  const std::string own = sql_schema_of(tenant);
  const auto noted = connection->row(postgres::sql::sql_schema{.schema = own, .store = schema});
  if (const std::string object = object_in(own); !noted.is_of_store() && !object.empty()) {
    throw SchemaMismatch{"the schema '" + own + "' isn't noted as that of tenant '" +
                         std::string{tenant} + "', and has the " + object +
                         "; it is left as it is: move it away, or, if it is this tenant's, note "
                         "it: " +
                         std::string{noted.note()}};
  }
  const auto models = read_models_of(*connection, tenant);
  const bool may_drop_all =
      std::all_of(models.begin(), models.end(), [](const ReadModel& one) { return one.may_drop; });
  return {is_there, noted.is_there(), noted.may_drop() && may_drop_all};
}

void remove_schemas(const std::string& conninfo, std::string_view tenant) {
  const auto connection = connect(conninfo);
  std::string all =
      postgres::quoted(schema_of(tenant)) + ", " + postgres::quoted(sql_schema_of(tenant));
  for (const ReadModel& one : read_models_of(*connection, tenant)) {
    all += ", " + postgres::quoted(one.schema);
  }
  connection->execute("DROP SCHEMA IF EXISTS " + all + " CASCADE");
}

std::string name_of_server(Store& store) {
  std::string name;
  store.database().read([&](database::Connection& connection) {
    name = postgres::connection_of(connection).row(postgres::sql::system_identifier{}).name();
  });
  return name;
}

}  // namespace stela::tenants
