// Messages with events of a version that a consumer doesn't know: they wait for a process that
// does.
#include "nats/shop.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::consumer_version_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct SentV1 {
  static constexpr EventType event_type{"letter.sent", 1, should_publish};
  std::string to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(to));
  }
};

struct Sent {
  static constexpr EventType event_type{"letter.sent", 2, should_publish};
  using Supersedes = SentV1;
  static Sent upcast(SentV1 old) { return {old.to, "post"}; }
  std::string to;
  std::string by;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(to), CEREAL_NVP(by));
  }
};

class UnknownVersionOfAMessage : public ::testing::Test {
 protected:
  void SetUp() override {
    append(SentV1{"jane"});
    append(Sent{"joe", "pigeon"});
    append(SentV1{"ada"});
    shop_.publish();
    older_.on<SentV1>([](Transaction& transaction, const Recorded<SentV1>& sent) {
      Ledger::write(transaction, "old " + sent->to);
    });
    newer_.on<Sent>([](Transaction& transaction, const Recorded<Sent>& sent) {
      Ledger::write(transaction, "new " + sent->to);
    });
  }
  template <class E>
  void append(E event) {
    UnitOfWork unit{shop_.store};
    unit.append(StreamId::parse("letter-1"), ExpectedVersion::any(), std::move(event));
    unit.commit();
  }
  nats::ConsumerOptions options() const {
    return {.url = server_.url(), .name = "post", .stream = "SHOP", .max_attempts = 1};
  }
  /// Until it has what comes from the broker.
  void poll_older() {
    EXPECT_TRUE(test::eventually([&] {
      total_ += older_.poll();
      return total_.held == 2;
    }));
  }
  nats::InboxOperations inbox() { return nats::InboxOperations{ledger_.store}; }

  test::TempDir dir_;
  test::NatsServer server_;
  testing::ManualClock clock_;
  test::Shop shop_{dir_.file("shop.db"), server_.url()};
  Ledger ledger_{dir_.file("post.db"), {.clock = &clock_}};
  nats::Consumer older_{ledger_.store, options()};
  nats::Consumer newer_{ledger_.store, options()};
  nats::ConsumerTick total_;
};

TEST_F(UnknownVersionOfAMessage, IsLeftToAProcessThatKnowsIt) {
  poll_older();
  for (int i = 0; i < 10; ++i, clock_.advance(5s)) total_ += older_.poll();

  EXPECT_EQ(total_.failed + total_.dead, 0);
  EXPECT_THAT(inbox().dead_letters(), IsEmpty());
  EXPECT_EQ(inbox().held().at(0).attempts, 0);
  EXPECT_THAT(inbox().held().at(0).error,
              HasSubstr("(letter.sent v2, version 2 of 'letter-1') isn't in the event set that "
                        "reads it"));
  EXPECT_THAT(inbox().held().at(0).error, HasSubstr("it waits for a process that knows it"));
  EXPECT_TRUE(test::eventually([&] {
    newer_.poll();
    clock_.advance(1s);
    return ledger_.lines().size() == 3;
  }));

  EXPECT_THAT(ledger_.lines(), ElementsAre("old jane", "new joe", "new ada"));
}

TEST_F(UnknownVersionOfAMessage, MakesADeadLetterWhenNobodyKnewItForSoLong) {
  poll_older();
  clock_.advance(1h - 1s);
  total_ += older_.poll();
  EXPECT_EQ(total_.dead, 0);
  clock_.advance(5s);

  EXPECT_TRUE(test::eventually([&] {
    total_ += older_.poll();
    return total_.dead == 1;
  }));
  EXPECT_TRUE(test::eventually([&] {
    older_.poll();
    return ledger_.lines().size() == 2;
  }));
  EXPECT_THAT(ledger_.lines(), ElementsAre("old jane", "old ada"));
  EXPECT_THAT(inbox().dead_letters().at(0).error, HasSubstr("(letter.sent v2"));
}

}  // namespace
}  // namespace stela::consumer_version_test
