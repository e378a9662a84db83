// The life of a publisher's session: when it calls its sink, and when no more.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace stela {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::NatsServer;

nats::PublisherOptions options_for(const std::string& url) {
  return {.url = url,
          .prefix = "shop",
          .stream = "SHOP",
          .ensure_stream = true,
          .connect_timeout = 1'000ms,
          .publish_timeout = 1'000ms};
}

/// Stays in the call that brings the answer to request 1 for a while, or until its session is over.
class SlowSink final : public AnswerSink {
 public:
  void take(Answer answer) override {
    std::unique_lock lock{mutex_};
    is_connected_ = is_connected_ || answer.kind == Answer::Kind::connected;
    changed_.notify_all();
    if (answer.request != 1) return;
    is_inside_ = true;
    changed_.wait_for(lock, 300ms, [this] { return is_over_; });
    is_inside_ = false;
  }

  bool wait_until_connected() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 10s, [this] { return is_connected_; });
  }
  bool wait_until_inside() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 10s, [this] { return is_inside_; });
  }
  /// The publisher said that its session is over; true if a call was under way.
  bool end() {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
    changed_.notify_all();
    return is_inside_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_connected_ = false;
  bool is_inside_ = false;
  bool is_over_ = false;
};

TEST(PublishersSession, EndsWhenItsSinkIsCalledNoMore) {
  const NatsServer server;
  SlowSink sink;
  nats::Publisher publisher{options_for(server.url())};
  publisher.connect(1, sink);
  ASSERT_TRUE(sink.wait_until_connected());
  publisher.read_back(1, PartitionId{}, 1);
  publisher.flush();
  ASSERT_TRUE(sink.wait_until_inside());

  publisher.disconnect();

  EXPECT_FALSE(sink.end());
}

TEST(PublishersSession, CallsNoRelayThatIsGone) {
  const test::TempDir dir;
  const NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  auto relay = std::make_unique<Relay>(shop.outbox, shop.publisher);
  shop.place("1");
  ASSERT_EQ(relay->tick().published, 1);
  server.pause();
  shop.place("2");
  relay->on_tick([](const RelayTick& tick) {
    if (tick.claimed > 0) throw std::runtime_error{"the listener"};
  });
  ASSERT_THROW(relay->run({}), std::runtime_error);

  relay.reset();
  server.resume();

  JetStream broker{server.url()};
  EXPECT_TRUE(test::eventually([&] { return broker.count("SHOP") == 2; }));
}

}  // namespace
}  // namespace stela
