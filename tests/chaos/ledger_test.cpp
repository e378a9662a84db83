// That the check of appends finds what it is for.
#include "chaos/ledger.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::chaos::ledger_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = Attempt::State;

/// Two tickets, 70 and 71, under the id "a".
Attempt two(State state, std::int64_t sequence = 0) {
  return {.id = "a", .first = 70, .count = 2, .state = state, .sequence = sequence};
}

TEST(Ledger, KeepsTheLastThatIsKnownOfEachAttempt) {
  const test::TempDir dir;
  {
    Ledger ledger{dir.file("ledger")};
    ledger.note(two(State::unanswered));
    ledger.note({.id = "b", .first = 72, .count = 1});
  }
  Ledger{dir.file("ledger")}.note(two(State::stored, 5));

  const std::vector<Attempt> read = Ledger::read(dir.file("ledger"));

  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].id, "a");
  EXPECT_EQ(read[0].first, 70);
  EXPECT_EQ(read[0].count, 2);
  EXPECT_EQ(read[0].state, State::stored);
  EXPECT_EQ(read[0].sequence, 5);
  EXPECT_EQ(read[1].id, "b");
  EXPECT_EQ(read[1].state, State::unanswered);
}

TEST(Contradictions, AreNoneWhereEverythingIsAsItWasSaid) {
  EXPECT_THAT(contradictions({two(State::stored, 5)}, {{5, 70}, {6, 71}}), IsEmpty());
  EXPECT_THAT(contradictions({two(State::refused)}, {}), IsEmpty());
  EXPECT_THAT(contradictions({two(State::unanswered)}, {}), IsEmpty());
  EXPECT_THAT(contradictions({two(State::unanswered)}, {{5, 70}, {6, 71}}), IsEmpty());
}

TEST(Contradictions, NameAnAcknowledgedAppendThatIsLost) {
  EXPECT_THAT(contradictions({two(State::stored, 5)}, {}),
              ElementsAre("an acknowledged append is lost: a"));
  EXPECT_THAT(contradictions({two(State::stored, 5)}, {{7, 70}, {8, 71}}),
              ElementsAre("an acknowledged append is lost: a"));
}

TEST(Contradictions, NameADuplicateAppend) {
  const std::vector<StoredTicket> twice{{5, 70}, {6, 71}, {7, 70}, {8, 71}};
  EXPECT_THAT(contradictions({two(State::stored, 5)}, twice),
              ElementsAre("an append is there twice: a"));
  EXPECT_THAT(contradictions({two(State::unanswered)}, twice),
              ElementsAre("an append is there twice: a"));
}

TEST(Contradictions, NameAPartialAppend) {
  EXPECT_THAT(contradictions({two(State::unanswered)}, {{5, 70}}),
              ElementsAre("an append is there in part: a"));
  EXPECT_THAT(contradictions({two(State::stored, 5)}, {{5, 70}}),
              ElementsAre("an append is there in part: a"));
  EXPECT_THAT(contradictions({two(State::unanswered)}, {{5, 71}}),
              ElementsAre("an append is there in part: a"));
}

TEST(Contradictions, NameAnAppendThatIsTorn) {
  EXPECT_THAT(contradictions({two(State::unanswered)}, {{5, 70}, {8, 71}}),
              ElementsAre("an append is torn: a"));
}

TEST(Contradictions, NameAStoredAppendThatWasRefused) {
  EXPECT_THAT(contradictions({two(State::refused)}, {{5, 70}, {6, 71}}),
              ElementsAre("a refused append is there: a"));
}

TEST(Contradictions, NameATicketWithoutAnAttempt) {
  EXPECT_THAT(contradictions({}, {{5, 70}}),
              ElementsAre("a ticket that nobody attempted: sequence 5"));
}

}  // namespace
}  // namespace stela::chaos::ledger_test
