// A consumer, whichever copy of the core it is of: the product's as it is, or with a fault in it.
#pragma once

#include "message_source.hpp"
#include "mutants/mutant.hpp"

#include <stela/nats/consumer.hpp>

#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

namespace stela::mutants {

/// What those who drive a consumer call of nats::Consumer::Worker.
/// Threads: one at a time.
class Follower {
 public:
  virtual ~Follower() = default;
  virtual void add(std::string_view event, std::unique_ptr<nats::Handler> handler) = 0;
  virtual nats::ConsumerTick run_once() = 0;
  virtual void run(std::stop_token stop) = 0;
};

/// The worker of one copy of the core.
template <class Core>
class FollowerOf final : public Follower {
 public:
  FollowerOf(Store& store, const nats::ConsumerOptions& options, nats::ConsumerPorts ports)
      : worker_{store, options, std::move(ports)} {}

  void add(std::string_view event, std::unique_ptr<nats::Handler> handler) override {
    worker_.add(event, std::move(handler));
  }
  nats::ConsumerTick run_once() override { return worker_.run_once(); }
  void run(std::stop_token stop) override { worker_.run(std::move(stop)); }

 private:
  Core worker_;
};

/// A consumer with the mutant's fault; the product's core for `none` and for what isn't in one.
std::unique_ptr<Follower> make_follower(Mutant mutant, Store& store,
                                        const nats::ConsumerOptions& options,
                                        nats::ConsumerPorts ports);

}  // namespace stela::mutants
