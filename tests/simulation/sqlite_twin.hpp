// The real store beside the model: every call goes to both, and what they answer must be the same.
#pragma once

#include "relay/outbox_port.hpp"
#include "simulation/model_store.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/clock.hpp>
#include <stela/outbox/outbox.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace stela::outbox {
class StoredOperations;
}

namespace stela::sim {

/// What workers and operators use: the model alone, or SQLite in memory with the model as its
/// judge. The first difference is a Violation of number 0. Threads: one.
class SharedStore {
 public:
  SharedStore(ModelStore& model, const Clock& clock, int partition_count, Fence fence, bool sqlite);
  ~SharedStore();

  std::string id() const;
  std::unique_ptr<relay::OutboxPort> port();
  void append(int stream, bool publishes, std::int64_t payload_bytes);

  void retry(std::int64_t stream, GlobalSequence through);
  void discard(GlobalSequence sequence);
  void republish(std::span<const GlobalSequence> sequences);
  void resize(int partition_count);
  void adopt(PartitionId partition);

 private:
  class ComparingPort;
  struct Real;

  ModelStore& model_;
  std::unique_ptr<Real> real_;
};

}  // namespace stela::sim
