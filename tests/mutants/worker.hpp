// A relay worker, whichever copy of the core it is of: the product's, or one with a fault in it.
#pragma once

#include "relay/core.hpp"

#include <stela/outbox/publisher.hpp>
#include <stela/outbox/relay.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace stela::mutants {

/// What a worker is given.
struct Ports {
  relay::OutboxPort& store;
  Publisher& publisher;
  const Clock& clock;
  Random& random;
  relay::Observer& observer;
  AnswerSink& answers;
};

/// What those who drive a worker call of relay::Worker.
/// Threads: one at a time.
class Worker {
 public:
  virtual ~Worker() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  virtual bool is_stopped() const = 0;
  virtual void on_answer(const Answer& answer) = 0;
  virtual void run_due() = 0;
  virtual relay::Steady deadline() const = 0;
  virtual std::size_t active_workers() const = 0;
  virtual std::size_t wanted_partitions() const = 0;
  virtual std::size_t owned_partitions() const = 0;
  virtual BrokerStatus broker_status() const = 0;
};

/// What a mutant puts before its ports; null where it puts nothing.
struct Decorators {
  std::unique_ptr<relay::OutboxPort> store = nullptr;
  std::unique_ptr<Publisher> publisher = nullptr;
};

/// The worker of one copy of the core.
template <class Core>
class WorkerOf final : public Worker {
 public:
  WorkerOf(const RelayOptions& options, Fence fence, const Ports& ports, Decorators decorators = {})
      : decorators_{std::move(decorators)},
        worker_{options,
                fence,
                {decorators_.store ? *decorators_.store : ports.store,
                 decorators_.publisher ? *decorators_.publisher : ports.publisher, ports.clock,
                 ports.random, ports.observer, ports.answers}} {}

  void start() override { worker_.start(); }
  void stop() override { worker_.stop(); }
  bool is_stopped() const override { return worker_.is_stopped(); }
  void on_answer(const Answer& answer) override { worker_.on_answer(answer); }
  void run_due() override { worker_.run_due(); }
  relay::Steady deadline() const override { return worker_.deadline(); }
  std::size_t active_workers() const override { return worker_.active_workers(); }
  std::size_t wanted_partitions() const override { return worker_.wanted_partitions(); }
  std::size_t owned_partitions() const override { return worker_.owned_partitions(); }
  BrokerStatus broker_status() const override { return worker_.broker_status(); }

 private:
  const Decorators decorators_;
  Core worker_;
};

}  // namespace stela::mutants
