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
      total_ += consumer.run_once();
      return done();
    });
  }
  /// Until it has left the message.
  void poll_older() {
    total_ += older_.run_once();
    EXPECT_EQ(reader().failing, 2);
  }
  void park() {
    poll_older();
    clock_.advance(2h);
    EXPECT_TRUE(polls_until(older_, [&] { return total_.parked == 2; }));
  }
  nats::ReaderStatus reader() { return inbox().status().at(0).readers.at(0); }
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
  for (int i = 0; i < 10; ++i, clock_.advance(5s)) total_ += older_.run_once();

  EXPECT_EQ(total_, (nats::ConsumerTick{.handled = 1}));
  EXPECT_EQ(reader().attempts, 0);
  EXPECT_EQ(reader().owner, "");
  EXPECT_THAT(reader().error, HasSubstr("(letter.sent v2, version 2 of 'letter-1') isn't in the "
                                        "event set that reads it"));
  EXPECT_THAT(reader().error, HasSubstr("it waits for a process that knows it"));
  EXPECT_THAT(log_.entries(), ElementsAre(AllOf(StartsWith("warning consumer.left_to_newer"),
                                                HasSubstr("version 2 of 'letter-1'"))));

  newer_.run_once();

  EXPECT_THAT(ledger_.lines(), ElementsAre("old jane", "new joe", "new ada"));
}

TEST_F(UnknownVersionOfAMessage, IsParkedWhenNobodyKnewItForSoLong) {
  poll_older();
  clock_.advance(1h - 1s);
  total_ += older_.run_once();
  EXPECT_EQ(total_.parked, 0);
  clock_.advance(5s);

  total_ += older_.run_once();

  EXPECT_EQ(total_.parked, 2) << "with the one behind it";
  EXPECT_THAT(ledger_.lines(), ElementsAre("old jane"));
  EXPECT_THAT(inbox().parked().at(0).error, HasSubstr("(letter.sent v2"));
  EXPECT_THAT(log_.entries(), Contains(StartsWith("error consumer.parked")));
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
  total_ += consumer.run_once();
  EXPECT_EQ(total_.failed, 1);

  clock_.advance(2h);
  fails = false;
  total_ += consumer.run_once();
  EXPECT_EQ(reader().failing, 2);
  clock_.advance(1h - 1s);
  total_ += consumer.run_once();
  EXPECT_EQ(total_.parked, 0);
  clock_.advance(5s);
  total_ += consumer.run_once();

  EXPECT_EQ(total_.parked, 2);
}

TEST_F(UnknownVersionOfAMessage, StaysParkedIfItIsRetriedBeforeANewerProcessReads) {
  park();
  inbox().retry(inbox().parked().at(0).number);

  older_.run_once();

  const nats::ParkedMessage kept = inbox().parked().at(0);
  EXPECT_FALSE(kept.is_to_retry);
  EXPECT_THAT(kept.error, HasSubstr("(letter.sent v2"));
  inbox().retry(kept.number);
  EXPECT_EQ(newer_.run_once().revived, 2);
  EXPECT_THAT(inbox().parked(), IsEmpty());
  EXPECT_THAT(ledger_.lines(), Contains("new joe"));
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
