// What ends while the broker sends.
#include "connection.hpp"
#include "connect.hpp"
#include "support/nats_server.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <chrono>
#include <latch>
#include <string>

namespace stela::nats::connection_test {
namespace {

using namespace std::chrono_literals;
using Filter = void (*)(natsConnection*, natsMsg**, void*);

/// nats.c's reading thread calls such a filter when it has found the subscription of a message,
/// and before it locks it. Null where nats.c has none.
const auto set_filter = reinterpret_cast<void (*)(natsConnection*, Filter, void*)>(
    dlsym(RTLD_DEFAULT, "natsConn_setFilterWithClosure"));

struct Halt {
  std::latch reached{1};
  std::latch over{1};

  static void at(natsConnection*, natsMsg**, void* self) {
    auto& halt = *static_cast<Halt*>(self);
    halt.reached.count_down();
    halt.over.wait();
  }
};

struct EndedSubscription : ::testing::Test {
  void publish(const std::string& subject) {
    check(natsConnection_PublishString(connection.get(), subject.c_str(), ""), "publishing");
    natsConnection_FlushTimeout(connection.get(), 1);
  }

  test::NatsServer server;
  const std::string url = server.url();
  const Credentials credentials = {};
  const Tls tls = {};
  Connection connection =
      connect({.url = url, .credentials = credentials, .tls = tls, .timeout = 5s});
};

TEST_F(EndedSubscription, IsFreedBehindAMessageThatIsOnItsWayToIt) {
  if (set_filter == nullptr) GTEST_SKIP() << "nats.c has no place to halt at";
  const Subscription lasting = connection.subscribe("lasting");
  Subscription ending = connection.subscribe("ending");
  Halt halt;
  set_filter(connection.get(), Halt::at, &halt);
  publish("ending");
  halt.reached.wait();
  ending.reset();
  set_filter(connection.get(), nullptr, nullptr);
  halt.over.count_down();

  publish("lasting");
  natsMsg* raw = nullptr;
  EXPECT_EQ(natsSubscription_NextMsg(&raw, lasting.get(), 5'000), NATS_OK);
  const MessageHandle message{raw};
  // Which frees the first.
  connection.subscribe("third");
}

}  // namespace
}  // namespace stela::nats::connection_test
