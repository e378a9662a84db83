// The stores that a relay may work on: the one on SQLite, and the simulator's model of it. A new
// one joins by adding itself to the list at the end.
#include "contract/relay_store.hpp"
#include "simulation/model_store.hpp"
#include "support/histories.hpp"
#include "tables/lease_store.hpp"
#include "tables/stored_operations.hpp"

#include <stela/outbox/outbox.hpp>

#include <algorithm>

namespace stela::test {
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

struct Sqlite final : RelaySubject {
  explicit Sqlite(int partitions)
      : store{sqlite::open_in_memory({.clock = &clock})},
        outbox{store, {.partition_count = partitions}},
        port_of_operators{store, by_stream()} {}

  void append(int stream) override {
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    test::append(store, "thing-" + std::to_string(stream),
                 {NewEvent{"thing.happened", 1, true, "{}"}});
  }
  std::unique_ptr<relay::OutboxPort> port() override {
    return std::make_unique<outbox::LeaseStore>(store);
  }
  relay::Operations& operations() override { return port_of_operators; }
  /// Streams are numbered from 1, as they appear.
  std::int64_t number(int stream) const override {
    return std::find(streams.begin(), streams.end(), stream) - streams.begin() + 1;
  }
  void arrive(PartitionId, std::int64_t, std::int64_t) override {}

  Store store;
  Outbox outbox;
  outbox::StoredOperations port_of_operators;
  std::vector<int> streams;
};

template <class S>
std::unique_ptr<RelaySubject> make(int partitions) {
  return std::make_unique<S>(partitions);
}

INSTANTIATE_TEST_SUITE_P(Stores, RelayStoreContract,
                         ::testing::Values(RelayStoreKind{"Model", make<Model>},
                                           RelayStoreKind{"Sqlite", make<Sqlite>}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::test
