// The stores that a relay may work on: the one on SQLite, and the simulator's model of it. A new
// one joins by adding itself to the list at the end.
#include "contract/relay_tables.hpp"
#include "simulation/model_store.hpp"

namespace stela::test::relay_stores {
namespace {

struct Model final : RelaySubject {
  explicit Model(int partitions) : store{clock, truth, partitions, chance} {
    truth.know_store(store.id());
  }

  void append(int stream) override { store.append(stream, true, 2); }
  std::unique_ptr<relay::OutboxPort> port() override { return store.port(); }
  relay::Operations& operations() override { return store; }
  std::int64_t number(int stream) const override { return stream; }
  /// The model knows what stands at the broker, and holds the store to it.
  void arrive(PartitionId partition, std::int64_t sequence, std::int64_t redelivery) override {
    truth.on_stored(partition, {.message = {.id = store.event_id(sequence).to_string(),
                                            .store_id = store.id(),
                                            .event = sequence,
                                            .redelivery = redelivery}});
  }

  sim::Chance chance{7};
  sim::Truth truth{Fence::none};
  sim::ModelStore store;
};

Store open_store(const Clock& clock) {
  return sqlite::open_in_memory({.clock = &clock});
}

struct Sqlite final : RelayTables {
  explicit Sqlite(int partitions) : RelayTables{open_store, partitions} {}
};

template <class S>
std::unique_ptr<RelaySubject> make(int partitions) {
  return std::make_unique<S>(partitions);
}

INSTANTIATE_TEST_SUITE_P(Stores, RelayStoreContract,
                         ::testing::Values(RelayStoreKind{"Model", make<Model>},
                                           RelayStoreKind{"Sqlite", make<Sqlite>}),
                         ::testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Stores, RelayJournalContract,
                         ::testing::Values(RelayStoreKind{"Sqlite", make<Sqlite>}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::test::relay_stores
