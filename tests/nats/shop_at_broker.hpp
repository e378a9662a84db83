// What tests of consumers begin with.
#pragma once

#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <gtest/gtest.h>

namespace stela::test {

/// A shop that publishes to a server of its own, and a client that looks at the broker.
class ShopAtBroker : public ::testing::Test {
 protected:
  nats::ConsumerOptions defaults() const {
    return {.url = server.url(), .name = "billing", .stream = "SHOP"};
  }

  TempDir dir;
  NatsServer server;
  JetStream broker{server.url()};
  Shop shop{dir.file("shop.db"), server.url()};
};

}  // namespace stela::test
