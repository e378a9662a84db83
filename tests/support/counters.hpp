// An aggregate with snapshots, for their tests.
#pragma once

#include <stela/framework.hpp>

#include <cstdint>

namespace stela::test {

struct Added {
  static constexpr EventType event_type{"counter.added"};
  std::int64_t amount = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(amount));
  }
};

/// The sum, and the number of applied events. With a snapshot that number is lower than the
/// version, because the snapshot doesn't keep it.
template <int layout>
struct CounterState {
  static constexpr int snapshot_version = layout;
  std::int64_t sum = 0;
  int applied = 0;

  void apply(const Added& e) {
    sum += e.amount;
    ++applied;
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(sum));
  }
};

template <int every, int layout = 1>
class SnapshotCounter : public AggregateRoot<CounterState<layout>, EventSet<Added>> {
 public:
  static constexpr std::string_view category = "counter";
  static constexpr auto snapshot_policy = SnapshotPolicy::every(every);
  using AggregateRoot<CounterState<layout>, EventSet<Added>>::AggregateRoot;
  void add(std::int64_t amount) { this->record(Added{amount}); }
};

class DemandCounter : public AggregateRoot<CounterState<1>, EventSet<Added>> {
 public:
  static constexpr std::string_view category = "counter";
  static constexpr auto snapshot_policy = SnapshotPolicy::on_demand();
  using AggregateRoot::AggregateRoot;
  void add(std::int64_t amount) { record(Added{amount}); }
};

}  // namespace stela::test
