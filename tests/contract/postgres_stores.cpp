// What has to keep the contract of event stores on PostgreSQL: event_stores.cpp has the others.
#include "contract/async.hpp"
#include "contract/event_store.hpp"
#include "contract/identity.hpp"
#include "contract/sql.hpp"
#include "contract/tagged_events.hpp"
#include "database/postgres/connection.hpp"
#include "support/postgres_server.hpp"

#include <string>

namespace stela::test::postgres_stores {
namespace {

/// One server for all tests of a process, and a schema for each.
std::unique_ptr<EventStore> postgres(const TempDir&, const stela::testing::ManualClock& clock,
                                     MetricSink* metrics) {
  static PostgresServer server;
  static int schemas = 0;
  return std::unique_ptr<EventStore>{new Store{stela::postgres::open(
      server.url(),
      {.schema = "shop " + std::to_string(++schemas), .metrics = metrics, .clock = &clock})}};
}

/// And a database for each, for tables of the user's.
std::unique_ptr<EventStore> postgres_database(const TempDir&,
                                              const stela::testing::ManualClock& clock,
                                              MetricSink* metrics) {
  static PostgresServer server;
  static int databases = 0;
  const std::string name = "bank" + std::to_string(++databases);
  stela::postgres::Connection{{.conninfo = server.url()}}.execute("CREATE DATABASE " + name);
  return std::unique_ptr<EventStore>{new Store{stela::postgres::open(
      server.url(name), {.schema = "the bank", .metrics = metrics, .clock = &clock})}};
}

INSTANTIATE_TEST_SUITE_P(Postgres, SqlContract,
                         ::testing::Values(Subject{"Postgres", postgres_database}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Postgres, AsyncContract, ::testing::Values(Subject{"Postgres", postgres}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Postgres, EventStoreContract,
                         ::testing::Values(Subject{"Postgres", postgres}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Postgres, IdentityContract,
                         ::testing::Values(Subject{"Postgres", postgres}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Postgres, QueryContract, ::testing::Values(Subject{"Postgres", postgres}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Postgres, ConditionContract,
                         ::testing::Values(Subject{"Postgres", postgres}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Postgres, DeclaredTagsContract,
                         ::testing::Values(Subject{"Postgres", postgres}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::test::postgres_stores
