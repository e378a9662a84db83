// A forked child has a copy of its parent's connections, and may use none of them.
#include "nats/shop.hpp"
#include "support/messages.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nats/nats.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::fork_test {
namespace {

using test::message_of;
using test::Process;
using ::testing::HasSubstr;
using ::testing::SizeIs;

void require(bool holds, const std::string& sentence) {
  if (!holds) throw std::runtime_error{sentence};
}

/// In processes that are no tests: it throws.
void require_refusal(const std::string& by, const std::function<void()>& use) {
  const std::string said = message_of<UsageError>(use);
  require(said.find("a forked process used a " + by) != std::string::npos, by + ": " + said);
}

TEST(ForkOfANatsClient, CannotUseItsParentsClientAndLeavesItAlone) {
  const test::TempDir dir;
  const test::NatsServer server;
  Process parent{[&] {
    std::optional<test::Shop> shop{std::in_place, dir.file("shop.db"), server.url()};
    std::optional<test::Ledger> ledger{std::in_place, dir.file("billing.db")};
    auto consumer = std::make_unique<nats::Consumer>(
        ledger->store,
        nats::ConsumerOptions{.url = server.url(), .name = "billing", .stream = "SHOP"});
    consumer->on<test::OrderPlaced>(test::Ledger::note<test::OrderPlaced>);
    std::optional<nats::StreamReader> reader{
        std::in_place, nats::PublisherOptions{.url = server.url(), .stream = "SHOP"}};
    const auto read = [&] { reader->read(PartitionId{}, [](const FoundMessage&) {}); };
    shop->place("1");
    shop->publish();
    consumer->run_once();
    read();

    Process child{[&] {
      require_refusal("store", [&] { shop->publish(); });
      require_refusal("publisher", [&] { shop->publisher.flush(); });
      require_refusal("store", [&] { consumer->run_once(); });
      require_refusal("reader", read);
      reader.reset();
      consumer.reset();
      ledger.reset();
      shop.reset();
    }};
    require(child.wait() == 0, "the child failed");

    shop->place("2");
    const RelayTick tick = shop->publish();
    require(tick.published == 1 && tick.read_backs == 0, "the publisher has lost its session");
    require(consumer->run_once().handled == 1, "the consumer has lost its connection");
    read();
  }};

  EXPECT_TRUE(test::eventually([&] { return !parent.is_running(); })) << "the child hangs";
  parent.kill();
  EXPECT_EQ(parent.wait(), 0);
}

/// Hears all requests that are sent to a server.
class Eavesdropper {
 public:
  explicit Eavesdropper(const std::string& url) {
    natsConnection_ConnectTo(&connection_, url.c_str());
    natsConnection_SubscribeSync(&all_, connection_, ">");
    natsConnection_Flush(connection_);
  }
  ~Eavesdropper() {
    natsSubscription_Destroy(all_);
    natsConnection_Destroy(connection_);
  }
  Eavesdropper(const Eavesdropper&) = delete;
  Eavesdropper& operator=(const Eavesdropper&) = delete;

  /// Where their answers were wanted.
  std::vector<std::string> inboxes() {
    natsConnection_Flush(connection_);
    std::vector<std::string> found;
    natsMsg* message = nullptr;
    while (natsSubscription_NextMsg(&message, all_, 1) == NATS_OK) {
      const char* const reply = natsMsg_GetReply(message);
      if (reply != nullptr && std::string{reply}.starts_with("_INBOX.")) found.emplace_back(reply);
      natsMsg_Destroy(message);
    }
    return found;
  }

 private:
  natsConnection* connection_ = nullptr;
  natsSubscription* all_ = nullptr;
};

TEST(ForkOfANatsClient, HasInboxesOfItsOwn) {
  const test::TempDir dir;
  const test::NatsServer server;
  const test::Shared<std::atomic<bool>> is_overheard;
  const auto work = [&](const std::string& database) {
    test::Shop shop{dir.file(database), server.url(), {.fence = Fence::none}};
    shop.place("1");
    require(shop.publish().published == 1, "nothing was published");
    nats::StreamReader reader{{.url = server.url(), .stream = "SHOP", .fence = Fence::none}};
    reader.read(PartitionId{}, [](const FoundMessage&) {});
  };
  Process parent{[&] {
    require(test::eventually([&] { return is_overheard->load(); }), "nobody listens");
    work("parent.db");
    for (const std::string database : {"one.db", "two.db"}) {
      Process child{[&] { work(database); }};
      require(child.wait() == 0, "a child failed");
    }
  }};
  Eavesdropper eavesdropper{server.url()};
  *is_overheard = true;
  ASSERT_EQ(parent.wait(), 0);

  const std::vector<std::string> inboxes = eavesdropper.inboxes();

  EXPECT_GE(inboxes.size(), 6U) << "each has published and read";
  EXPECT_THAT((std::set<std::string>{inboxes.begin(), inboxes.end()}), SizeIs(inboxes.size()));
}

}  // namespace
}  // namespace stela::fork_test
