// That the check of deletions finds what it is for.
#include "chaos/deletions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::chaos::deletions_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Three events of one stream, the second of which was deleted before its effect.
std::vector<Outcome> three() {
  return {{1, "a", 1, false, true, true},
          {2, "a", 2, true, false, false},
          {3, "a", 3, false, true, true}};
}
const std::vector<NotedGap> gap{{"a", 1, 2}};

TEST(Deletions, LeaveAGapAndAreMissedByAComparison) {
  EXPECT_THAT(flaws_of_deletions(three(), gap, {2}), IsEmpty());
}

TEST(Deletions, LeaveNoGapAfterAnEffectOrAtTheEnd) {
  auto handled_before = three();
  handled_before[1].has_effect = true;
  EXPECT_THAT(flaws_of_deletions(handled_before, {}, {2}), IsEmpty());
  auto last = three();
  last.pop_back();
  EXPECT_THAT(flaws_of_deletions(last, {}, {2}), IsEmpty());
}

TEST(Deletions, NameADeletedMessageThatIsSentAgain) {
  auto sent_again = three();
  sent_again[1].is_at_broker = true;
  EXPECT_THAT(flaws_of_deletions(sent_again, gap, {2}),
              ElementsAre("event 2 was deleted, and sent again unasked"));
}

TEST(Deletions, NameFalseResultsOfAComparison) {
  EXPECT_THAT(flaws_of_deletions(three(), gap, {3}),
              ElementsAre("event 2 was deleted, and no comparison misses it",
                          "event 3 is missed by a comparison without a reason"));
}

TEST(Deletions, NameAGapThatIsNotNoted) {
  EXPECT_THAT(flaws_of_deletions(three(), {}, {2}),
              ElementsAre("event 2 was deleted and had no effect, and no gap is noted"));
}

TEST(Deletions, NameAGapThatCoversMore) {
  EXPECT_THAT(flaws_of_deletions(three(), {{"a", 0, 2}}, {2}),
              ElementsAre("event 1 is in a gap, and wasn't deleted",
                          "event 1 is in a gap, and had its effect"));
  EXPECT_THAT(flaws_of_deletions(three(), {{"a", 1, 2}, {"b", 4, 5}}, {2}),
              ElementsAre("a gap of nothing: b after 4"));
}

}  // namespace
}  // namespace stela::chaos::deletions_test
