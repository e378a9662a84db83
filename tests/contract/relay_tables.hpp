// The outbox's tables in a store of some engine, for the contract of a relay's stores.
#pragma once

#include "contract/relay_store.hpp"
#include "support/histories.hpp"
#include "tables/relay_store.hpp"
#include "tables/stored_operations.hpp"

#include <stela/outbox/outbox.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stela::test {

struct RelayTables : RelaySubject {
  RelayTables(const std::function<Store(const Clock&)>& open, int partitions)
      : store{open(clock)},
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
    return std::make_unique<outbox::RelayStore>(store, true);
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

inline Store& store_of(RelaySubject& subject) {
  return static_cast<RelayTables&>(subject).store;
}

/// What only tables keep: the past.
class RelayJournalContract : public RelayStoreContract {};

}  // namespace stela::test
