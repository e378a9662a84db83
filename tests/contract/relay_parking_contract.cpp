// What every store does with messages that are parked, retried, discarded or republished.
#include "contract/relay_store.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stela::relay_parking_contract {
namespace {

using test::RelayStoreContract;

TEST_P(RelayStoreContract, HoldsLaterMessagesOfAStreamThatHasParkedOnes) {
  append({1, 2, 1});
  acquire();
  EXPECT_TRUE(park(1));
  EXPECT_EQ(next(), "2 3 behind");
  append({1, 3});
  EXPECT_EQ(next(), "2 3 behind 4 behind 5");
}

TEST_P(RelayStoreContract, SendsAMessageAgainIfNoParkedOneIsBeforeIt) {
  append({1, 1});
  acquire();
  park(1);
  retry(1, 1);
  // The worker saw it behind a parked one; meanwhile an operator has retried that.
  EXPECT_TRUE(park(2, 0, relay::ParkedMessage::Reason::behind));
  EXPECT_EQ(next(), "1r1 2r2");
}

TEST_P(RelayStoreContract, TakesAParkedMessageThatArrivedAllTheSame) {
  append({1, 1});
  acquire();
  park(1);
  EXPECT_TRUE(publish(1));
  EXPECT_EQ(next(), "2");
  EXPECT_FALSE(discard(1));
}

TEST_P(RelayStoreContract, SendsWhatIsParkedBehindAMessageThatArrivedAllTheSame) {
  using enum relay::ParkedMessage::Reason;
  append({1, 1, 1, 1, 1, 1});
  acquire();
  park(1);
  park(2, 0, behind);
  park(3, 0, behind);
  park(4);
  park(5, 0, behind);
  EXPECT_TRUE(publish(1));
  EXPECT_EQ(next(), "2r1 3r2 6 behind") << "4 is parked itself";
}

/// What is to be sent again already would overtake it.
TEST_P(RelayStoreContract, SendsWhatIsParkedBehindAMessageThatArrivedAllTheSameInOrder) {
  using enum relay::ParkedMessage::Reason;
  append({1, 1, 1});
  acquire();
  park(1);
  park(2, 0, behind);
  park(3, 0, behind);
  retry(1, 3);
  park(1, 1);
  park(2, 2, behind);
  EXPECT_TRUE(publish(1));
  EXPECT_EQ(next(), "3r3 behind");

  EXPECT_TRUE(park(3, 3, behind));

  EXPECT_EQ(next(), "2r4 3r5");
}

TEST_P(RelayStoreContract, RetriesThePrefixThatIsMeant) {
  append({1, 1, 1});
  acquire();
  park(1);
  park(2);
  park(3);

  EXPECT_EQ(retry(1, 2), 2);
  EXPECT_EQ(next(), "1r1 2r2");
  EXPECT_EQ(retry(1, 2), 0);
  EXPECT_EQ(retry(1, 3), 1);
  EXPECT_EQ(next(), "1r1 2r2 3r3");
}

/// A relay may have parked them there since somebody looked.
TEST_P(RelayStoreContract, RetriesWhatIsParkedBehindTheLastThatIsMeant) {
  using enum relay::ParkedMessage::Reason;
  append({1, 1, 1, 1, 1, 1});
  acquire();
  park(1);
  park(2, 0, behind);
  park(3, 0, behind);
  park(4);
  park(5, 0, behind);

  EXPECT_EQ(retry(1, 1), 3);
  EXPECT_EQ(next(), "1r1 2r2 3r3 6 behind");
  EXPECT_EQ(retry(1, 4), 2);
  EXPECT_EQ(next(), "1r1 2r2 3r3 4r4 5r5 6");
}

TEST_P(RelayStoreContract, RetriesAgainWhatNothingIsParkedBefore) {
  using enum relay::ParkedMessage::Reason;
  append({1, 1, 1});
  acquire();
  park(2);
  park(3, 0, behind);
  park(1);
  EXPECT_EQ(retry(1, 1), 1);
  EXPECT_EQ(next(), "1r1");
  EXPECT_EQ(retry(1, 2), 2);
  EXPECT_EQ(next(), "1r1 2r2 3r3");
}

TEST_P(RelayStoreContract, KeepsTheOrderOfAStreamThatIsRetriedTwice) {
  append({1, 1});
  acquire();
  park(1);
  park(2, 0, relay::ParkedMessage::Reason::behind);
  retry(1, 2);
  park(1, 1);
  EXPECT_EQ(next(), "2r2 behind");

  EXPECT_EQ(retry(1, 1), 1);

  EXPECT_EQ(next(), "1r3 2r4");
}

TEST_P(RelayStoreContract, DiscardsOnlyParkedMessages) {
  append({1, 1});
  acquire();
  EXPECT_FALSE(discard(1));
  park(1);
  EXPECT_TRUE(discard(1));
  EXPECT_FALSE(discard(1));
  EXPECT_EQ(next(), "2");
}

TEST_P(RelayStoreContract, SendsMessagesParkedBehindADiscardedOne) {
  using enum relay::ParkedMessage::Reason;
  append({1, 1, 1, 1, 2});
  acquire();
  park(1);
  park(2, 0, behind);
  park(3);
  park(4, 0, behind);
  EXPECT_TRUE(discard(1));
  EXPECT_EQ(next(), "2r1 5");
  EXPECT_TRUE(discard(3));
  EXPECT_EQ(next(), "2r1 4r2 5");
}

TEST_P(RelayStoreContract, KeepsMessagesParkedBehindAnotherThanTheDiscardedOne) {
  append({1, 1, 1});
  acquire();
  park(1);
  park(2, 0, relay::ParkedMessage::Reason::behind);
  park(3, 0, relay::ParkedMessage::Reason::behind);
  EXPECT_TRUE(discard(2));
  EXPECT_EQ(next(), "");
  EXPECT_EQ(retry(1, 9), 2);
  EXPECT_EQ(next(), "1r1 3r2");
}

TEST_P(RelayStoreContract, SkipsOnRequest) {
  append({1, 1});
  acquire();
  EXPECT_TRUE(skip(1));
  EXPECT_EQ(next(), "2");
  EXPECT_EQ(republish({GlobalSequence{1}}), 0) << "it was never published";
}

TEST_P(RelayStoreContract, RepublishesPublishedMessages) {
  append({1, 2, 1});
  acquire();
  publish(1);
  publish(2);
  EXPECT_EQ(republish({GlobalSequence{1}, GlobalSequence{2}, GlobalSequence{3}}), 2);
  EXPECT_EQ(next(), "1r1 republished 2r2 republished 3");
  EXPECT_EQ(next(all, 9, {.redelivery = 1}), "2r2 republished 3");
}

TEST_P(RelayStoreContract, NeverGivesANumberTwice) {
  append({1});
  acquire();
  publish(1);
  for (std::int64_t i = 1; i < 4; ++i) {
    republish({GlobalSequence{1}});
    EXPECT_EQ(next(), "1r" + std::to_string(i) + " republished");
    EXPECT_TRUE(publish(1, i));
    EXPECT_EQ(next(), "");
  }
}

TEST_P(RelayStoreContract, HasNothingToRetryOrRepublish) {
  append({1});
  EXPECT_EQ(retry(1, 9), 0);
  EXPECT_EQ(republish({GlobalSequence{1}}), 0);
  EXPECT_EQ(next(), "1");
}

}  // namespace
}  // namespace stela::relay_parking_contract
