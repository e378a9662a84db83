// The stores that keep the contract. A new one joins by adding itself to the list at the end.
#include "contract/async.hpp"
#include "contract/event_store.hpp"
#include "contract/identity.hpp"
#include "contract/sql.hpp"
#include "contract/tagged_events.hpp"

#include <stela/testing/memory_store.hpp>

#include <memory>

namespace stela::test::event_stores {
namespace {

std::unique_ptr<EventStore> in_memory(const TempDir&, const stela::testing::ManualClock& clock,
                                      MetricSink* metrics) {
  return std::make_unique<stela::testing::MemoryStore>(
      stela::testing::MemoryStore::Options{.metrics = metrics, .clock = &clock});
}

std::unique_ptr<EventStore> sqlite_in_memory(const TempDir&,
                                             const stela::testing::ManualClock& clock,
                                             MetricSink* metrics) {
  return std::unique_ptr<EventStore>{
      new Store{sqlite::open_in_memory({.metrics = metrics, .clock = &clock})}};
}

std::unique_ptr<EventStore> sqlite_file(const TempDir& dir,
                                        const stela::testing::ManualClock& clock,
                                        MetricSink* metrics) {
  return std::unique_ptr<EventStore>{
      new Store{sqlite::open(dir.file("shop.db"), {.metrics = metrics, .clock = &clock})}};
}

const auto stores =
    ::testing::Values(Subject{"InMemory", in_memory}, Subject{"SqliteInMemory", sqlite_in_memory},
                      Subject{"SqliteFile", sqlite_file});

INSTANTIATE_TEST_SUITE_P(Stores, EventStoreContract, stores, ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Stores, IdentityContract, stores, ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Stores, QueryContract, stores, ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Stores, ConditionContract, stores, ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Stores, DeclaredTagsContract, stores, ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Stores, AsyncContract,
                         ::testing::Values(Subject{"SqliteInMemory", sqlite_in_memory},
                                           Subject{"SqliteFile", sqlite_file}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Stores, SqlContract, ::testing::Values(Subject{"SqliteFile", sqlite_file}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::test::event_stores
