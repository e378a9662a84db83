// Messages with events of a version that a consumer doesn't know: they wait for a process that
// does.
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"

#include <stela/framework/error.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace stela::consumer_version_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

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
  bool polls_until(nats::Consumer& consumer, const std::function<bool()>& done) {
    return test::eventually([&] {
      total_ += consumer.poll();
      return done();
    });
  }
  /// How long the first of the stream that is held waits for its next attempt.
  std::chrono::microseconds pause() { return inbox().held().at(0).due_at - clock_.now(); }
  /// Until it has what comes from the broker.
  void poll_older() {
    EXPECT_TRUE(polls_until(older_, [&] { return total_.held == 2; }));
  }
  void make_dead_letter() {
    poll_older();
    clock_.advance(2h);
    EXPECT_TRUE(polls_until(older_, [&] { return total_.dead == 1; }));
    EXPECT_TRUE(polls_until(older_, [&] { return ledger_.lines().size() == 2; }));
  }
  nats::InboxOperations inbox() { return nats::InboxOperations{ledger_.store}; }

  test::TempDir dir_;
  test::NatsServer server_;
  testing::ManualClock clock_;
  test::Shop shop_{dir_.file("shop.db"), server_.url()};
  test::RecordingLog log_;
  Ledger ledger_{dir_.file("post.db"), {.log = &log_, .clock = &clock_}};
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
    clock_.advance(10s);
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

  EXPECT_TRUE(polls_until(older_, [&] { return total_.dead == 1; }));
  EXPECT_TRUE(polls_until(older_, [&] { return ledger_.lines().size() == 2; }));
  EXPECT_THAT(ledger_.lines(), ElementsAre("old jane", "old ada"));
  EXPECT_THAT(inbox().dead_letters().at(0).error, HasSubstr("(letter.sent v2"));
  EXPECT_THAT(log_.entries(), Contains(StartsWith("error consumer.dead_letter")));
}

TEST_F(UnknownVersionOfAMessage, WaitsFromWhenItWasFirstMet) {
  bool fails = true;
  nats::ConsumerOptions with = options();
  with.max_attempts = 1'000;
  nats::Consumer consumer{ledger_.store, with};
  consumer.on<SentV1>([&](Transaction& transaction, const Recorded<SentV1>& sent) {
    if (fails) throw std::runtime_error{"not yet"};
    Ledger::write(transaction, sent->to);
  });
  EXPECT_TRUE(polls_until(consumer, [&] { return total_.held == 2; }));
  EXPECT_EQ(total_.failed, 1);

  clock_.advance(2h);
  fails = false;
  EXPECT_TRUE(polls_until(consumer, [&] { return inbox().held().at(0).version.value() == 2; }));
  EXPECT_THAT(log_.entries(), Contains(AllOf(StartsWith("warning consumer.left_to_newer"),
                                             HasSubstr("version 2 of 'letter-1'"))));
  clock_.advance(1h - 1s);
  total_ += consumer.poll();
  EXPECT_EQ(total_.dead, 0);
  clock_.advance(5s);

  EXPECT_TRUE(polls_until(consumer, [&] { return total_.dead == 1; }));
  EXPECT_THAT(log_.entries(), Contains(AllOf(StartsWith("error consumer.dead_letter"),
                                             HasSubstr("version 2 of 'letter-1'"))));
}

TEST_F(UnknownVersionOfAMessage, IsTriedAfterGrowingPauses) {
  poll_older();
  EXPECT_LE(pause(), 1'250ms);
  clock_.advance(16s);
  total_ += older_.poll();
  EXPECT_GE(pause(), 12s);
  EXPECT_LE(pause(), 20s);
  clock_.advance(20min);
  total_ += older_.poll();
  EXPECT_GE(pause(), 45s);
  EXPECT_LE(pause(), 75s);
  EXPECT_EQ(total_.held, 2) << "said when it begins to wait";
}

TEST_F(UnknownVersionOfAMessage, IsLeftToAProcessThatKnowsItAlsoAsARetriedDeadLetter) {
  make_dead_letter();
  const nats::DeadLetter dead = inbox().dead_letters().at(0);
  inbox().retry(dead.number);

  older_.poll();

  const nats::DeadLetter left = inbox().dead_letters().at(0);
  EXPECT_TRUE(left.is_to_retry);
  EXPECT_EQ(left.attempts, dead.attempts);
  EXPECT_THAT(left.error, HasSubstr("it waits for a process that knows it"));
  EXPECT_EQ(newer_.poll().revived, 1);
  EXPECT_THAT(inbox().dead_letters(), IsEmpty());
  EXPECT_THAT(ledger_.lines(), Contains("new joe"));
}

TEST_F(UnknownVersionOfAMessage, KeepsNoProcessBusyAsARetriedDeadLetter) {
  make_dead_letter();
  int calls = 0;
  nats::Consumer consumer{ledger_.store, options()};
  consumer.on<Sent>([&](Transaction&, const Recorded<Sent>&) {
    ++calls;
    throw UnknownEvent{"the stock has a version that isn't known"};
  });
  inbox().retry(inbox().dead_letters().at(0).number);

  for (int i = 0; i < 5; ++i) consumer.poll();
  EXPECT_EQ(calls, 1);
  clock_.advance(1'250ms);
  for (int i = 0; i < 5; ++i) consumer.poll();
  EXPECT_EQ(calls, 2);
  clock_.advance(1'250ms);
  for (int i = 0; i < 5; ++i) consumer.poll();
  EXPECT_EQ(calls, 2);
}

TEST(UnknownVersionWait, IsAtMostAYear) {
  nats::ConsumerOptions options{.name = "post", .unknown_version_wait = 365 * 24h};
  EXPECT_NO_THROW(check(options));
  options.unknown_version_wait += 1ms;
  EXPECT_THAT([&] { check(options); },
              ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("unknown_version_wait is"), HasSubstr("0 ms to 8760 h"))));
}

}  // namespace
}  // namespace stela::consumer_version_test
