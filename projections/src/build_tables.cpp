#include "build_tables.hpp"

#include "projections_sql/builds.hpp"
#include "projections_sql/parked.hpp"
#include "sqlite/tables.hpp"
#ifdef STELA_HAS_POSTGRES
#include "postgres/tables.hpp"
#endif

namespace stela::projections {

#ifdef STELA_HAS_POSTGRES

std::unique_ptr<BuildModel> make_model(Store& store, const Build& build) {
  auto model = make_sqlite_model(store.database(), build);
  return model ? std::move(model) : make_postgres_model(build);
}

const Tables& tables_of(const database::Connection& connection) {
  return is_postgres(connection) ? postgres_tables() : sqlite_tables();
}

#else

std::unique_ptr<BuildModel> make_model(Store& store, const Build& build) {
  return make_sqlite_model(store.database(), build);
}

const Tables& tables_of(const database::Connection&) {
  return sqlite_tables();
}

#endif

void drop(database::Connection& connection, const Build& build) {
  if (build.target == 0) tables_of(connection).drop(connection, build);
  connection.run(sql::delete_parked_of_build{.name = build.name, .build = build.number});
  connection.run(sql::delete_build{.name = build.name, .build = build.number});
}

}  // namespace stela::projections
