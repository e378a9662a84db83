// What has to keep the contract of a relay's stores on PostgreSQL: relay_stores.cpp has the others.
#include "contract/relay_tables.hpp"
#include "support/postgres_server.hpp"

#include <string>

namespace stela::test::postgres_relay_stores {
namespace {

/// One server for all tests of a process, and a schema for each.
Store open_store(const Clock& clock) {
  static PostgresServer server;
  static int schemas = 0;
  return stela::postgres::open(server.url(),
                               {.schema = "shop " + std::to_string(++schemas), .clock = &clock});
}

std::unique_ptr<RelaySubject> make(int partitions) {
  return std::make_unique<RelayTables>(open_store, partitions);
}

INSTANTIATE_TEST_SUITE_P(Postgres, RelayStoreContract,
                         ::testing::Values(RelayStoreKind{"Postgres", make}),
                         ::testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Postgres, RelayJournalContract,
                         ::testing::Values(RelayStoreKind{"Postgres", make}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::test::postgres_relay_stores
