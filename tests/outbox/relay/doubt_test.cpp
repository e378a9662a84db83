// What a read-back says about where a partition stands.
#include "relay/doubt.hpp"
#include "outbox/relay/lane_bench.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace stela::doubt_test {
namespace {

using relay::missing_in_store;
using relay::Position;
using test::ours;

/// What the broker answers: its first and last sequence, and what it has from the position on.
struct Broker {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  std::vector<FoundMessage> found = {};
};

struct Case {
  const char* name;
  Fence fence;
  Position position;
  Broker broker;
  /// Why it stops, if it does.
  std::optional<StopReason> stop;
  /// How many messages follow the position.
  std::size_t following = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& row) {
  return out << row.name;
}

/// Event `sequence` is the last one, at `at`.
Position known(std::int64_t sequence, std::uint64_t at) {
  return {at, test::id_of(sequence).to_string(), GlobalSequence{sequence}};
}

constexpr std::nullopt_t continues = std::nullopt;

/// An operator adopted what stands at `at`.
Position adopted(std::int64_t sequence, std::uint64_t at) {
  return {at, "", GlobalSequence{sequence}};
}

FoundMessage of_another_store(std::int64_t sequence, std::uint64_t at) {
  FoundMessage message = ours(sequence, at);
  message.store_id = "another-store";
  return message;
}

FoundMessage foreign(std::uint64_t at) {
  return {.broker_sequence = at, .message_id = "whoever"};
}

FoundMessage sent_again(std::int64_t sequence, std::uint64_t at) {
  FoundMessage message = ours(sequence, at);
  message.message_id += ".r7";
  message.redelivery = 7;
  return message;
}

const Case table[] = {
    // Each partition has a stream of its own.
    {"AnEmptyStream", Fence::stream, {}, {}, continues},
    {"TheKnownMessage", Fence::stream, known(5, 5), {1, 5, {ours(5, 5)}}, continues},
    {"ARemovedLastMessage", Fence::stream, known(5, 5), {1, 5}, continues},
    {"APurgedStream", Fence::stream, known(5, 5), {6, 5}, continues},
    {"AnAdoptedMessage", Fence::stream, adopted(5, 5), {1, 5, {foreign(5)}}, continues},
    {"FirstMessages", Fence::stream, {}, {1, 2, {ours(1, 1), ours(2, 2)}}, continues, 2},
    {"ALaterMessage", Fence::stream, known(5, 5), {1, 6, {ours(5, 5), ours(6, 6)}}, continues, 1},
    {"ALaterMessageOnly", Fence::stream, known(5, 5), {1, 6, {ours(6, 6)}}, continues, 1},
    {"TheKnownMessageAfterOthers",
     Fence::stream,
     known(5, 5),
     {1, 5, {ours(4, 4), ours(5, 5)}},
     continues},
    {"ALaterMessageAfterOthers",
     Fence::stream,
     known(5, 5),
     {1, 6, {foreign(4), ours(5, 5), ours(6, 6)}},
     continues,
     1},
    {"ARepetition",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5), sent_again(2, 6)}},
     continues,
     1},
    {"AMessageAfterAnAdoptedOne",
     Fence::stream,
     adopted(5, 5),
     {1, 6, {foreign(5), ours(6, 6)}},
     continues,
     1},
    {"AShorterStream", Fence::stream, known(5, 5), {1, 4}, StopReason::broker_lost},
    {"AStreamThatWasMadeAgain", Fence::stream, known(5, 5), {0, 0}, StopReason::broker_lost},
    {"AShorterStreamAfterAnAdoption",
     Fence::stream,
     adopted(5, 5),
     {1, 4},
     StopReason::broker_lost},
    {"ANeighbour",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5), foreign(6)}},
     StopReason::foreign_writer,
     1},
    {"AnotherStore",
     Fence::stream,
     {},
     {1, 1, {of_another_store(1, 1)}},
     StopReason::foreign_writer,
     1},
    {"ANeighbourInAnEmptyPartition",
     Fence::stream,
     {},
     {1, 1, {foreign(1)}},
     StopReason::foreign_writer,
     1},
    {"AnotherMessageInItsPlace",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(7, 5), ours(8, 6)}},
     StopReason::store_went_back,
     1},
    {"AnotherStreamInItsPlace",
     Fence::stream,
     known(5, 5),
     {1, 5, {foreign(5)}},
     StopReason::store_went_back},
    {"TheKnownEventSentAgain",
     Fence::stream,
     known(5, 5),
     {1, 5, {sent_again(5, 5)}},
     StopReason::store_went_back},
    {"AHoleAfterTheKnownMessage",
     Fence::stream,
     known(5, 5),
     {1, 7, {ours(5, 5), ours(7, 7)}},
     StopReason::unreadable,
     1},
    {"AHoleBeforeTheFirstMessage",
     Fence::stream,
     {},
     {1, 2, {ours(2, 2)}},
     StopReason::unreadable,
     1},
    {"AHoleAtTheEnd",
     Fence::stream,
     known(5, 5),
     {1, 7, {ours(5, 5), ours(6, 6)}},
     StopReason::unreadable,
     1},
    {"ANewMessageThatWasRemoved",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5)}},
     StopReason::unreadable},
    {"ANeighbourAfterAHole",
     Fence::stream,
     known(5, 5),
     {1, 7, {ours(5, 5), foreign(7)}},
     StopReason::foreign_writer,
     1},

    // All partitions share a stream.
    {"AnEmptySubject", Fence::subject, {}, {}, continues},
    {"AnEmptySubjectInAUsedStream", Fence::subject, {}, {30, 0}, continues},
    {"ItsKnownMessage", Fence::subject, known(5, 9), {1, 9, {ours(5, 9)}}, continues},
    {"ItsKnownMessageWithoutItsEnd", Fence::subject, known(5, 9), {1, 0, {ours(5, 9)}}, continues},
    {"ARemovedKnownMessage", Fence::subject, known(5, 9), {1, 9}, continues},
    {"AnAdoptedMessageOfASubject", Fence::subject, adopted(5, 9), {1, 9, {foreign(9)}}, continues},
    {"LaterMessagesAmongOthers",
     Fence::subject,
     known(5, 9),
     {1, 30, {ours(5, 9), ours(6, 20), ours(7, 30)}},
     continues,
     2},
    {"LaterMessagesWithoutTheirEnd",
     Fence::subject,
     known(5, 9),
     {1, 0, {ours(5, 9), ours(6, 20)}},
     continues,
     1},
    {"ALaterMessageThoughItsOwnIsGone",
     Fence::subject,
     known(5, 9),
     {12, 20, {ours(6, 20)}},
     continues,
     1},
    {"ARepetitionThoughItsOwnIsGone",
     Fence::subject,
     known(5, 9),
     {12, 20, {sent_again(2, 20)}},
     continues,
     1},
    {"AllIsDropped", Fence::subject, known(5, 9), {10, 0}, continues},
    {"TheLastOneIsRemovedFromALivingStream",
     Fence::subject,
     known(5, 9),
     {9, 0},
     StopReason::broker_lost},
    {"OnlyEarlierMessages", Fence::subject, known(5, 9), {1, 7}, StopReason::broker_lost},
    {"ANeighbourInItsSubject",
     Fence::subject,
     known(5, 9),
     {1, 12, {ours(5, 9), foreign(12)}},
     StopReason::foreign_writer,
     1},
    {"AnotherStoreInItsSubject",
     Fence::subject,
     known(5, 9),
     {1, 12, {ours(5, 9), of_another_store(6, 12)}},
     StopReason::foreign_writer,
     1},
    {"AnotherMessageInItsPlaceInASubject",
     Fence::subject,
     known(5, 9),
     {1, 9, {ours(3, 9)}},
     StopReason::store_went_back},
    {"AnEarlierEventInAnotherHistory",
     Fence::subject,
     known(9, 5),
     {1, 7, {ours(6, 6), ours(7, 7)}},
     StopReason::store_went_back,
     2},
    {"AnEarlierEventAfterTheKnownMessage",
     Fence::subject,
     known(9, 5),
     {1, 7, {ours(9, 5), ours(6, 7)}},
     continues,
     1},
};

class ReadBack : public ::testing::TestWithParam<Case> {};

TEST_P(ReadBack, SaysWhereThePartitionStands) {
  const Case& row = GetParam();
  const Answer answer{.kind = Answer::Kind::read_back,
                      .first_sequence = row.broker.first,
                      .last_sequence = row.broker.last,
                      .found = row.broker.found};

  const relay::Verdict verdict = compare(row.position, answer, row.fence, "the-store");

  EXPECT_EQ(verdict.stop, row.stop);
  EXPECT_EQ(verdict.following.size(), row.following);
}

INSTANTIATE_TEST_SUITE_P(Of, ReadBack, ::testing::ValuesIn(table),
                         [](const auto& row) { return std::string{row.param.name}; });

TEST(ReadBacks, MeetEveryVerdict) {
  std::set<std::optional<StopReason>> met;
  for (const Case& row : table) met.insert(row.stop);
  EXPECT_EQ(met, (std::set<std::optional<StopReason>>{
                     continues, StopReason::broker_lost, StopReason::foreign_writer,
                     StopReason::store_went_back, StopReason::unreadable}));
}

std::string place_of(const Position& position, const Broker& broker) {
  const Answer answer{.kind = Answer::Kind::read_back,
                      .first_sequence = broker.first,
                      .last_sequence = broker.last,
                      .found = broker.found};
  const relay::Verdict verdict = compare(position, answer, Fence::stream, "the-store");
  const std::string at =
      verdict.place == nullptr ? "none" : std::to_string(verdict.place->broker_sequence);
  return at + (verdict.is_displaced ? ", displaced" : "");
}

TEST(ReadBacks, ShowWhatStandsInThePlaceOfTheKnownMessage) {
  EXPECT_EQ(place_of(known(5, 5), {1, 5, {ours(4, 4), ours(5, 5)}}), "5");
  EXPECT_EQ(place_of(known(5, 5), {1, 5, {ours(7, 5)}}), "5, displaced");
  EXPECT_EQ(place_of(adopted(5, 5), {1, 5, {foreign(5)}}), "5");
  EXPECT_EQ(place_of(known(5, 5), {1, 6, {ours(6, 6)}}), "none") << "it was removed";
  EXPECT_EQ(place_of(known(5, 5), {1, 4, {ours(3, 3), ours(4, 4)}}), "4, displaced");
  EXPECT_EQ(place_of(known(5, 5), {1, 4}), "none, displaced") << "it wasn't asked for";
  EXPECT_EQ(place_of({}, {1, 1, {ours(1, 1)}}), "none");
}

TEST(ReadBacks, NameTheEventsThatTheStoreDoesNotHave) {
  const std::vector<FoundMessage> found{ours(6, 6), sent_again(7, 7), ours(8, 8)};
  const std::vector<EventId> all{test::id_of(6), test::id_of(7), test::id_of(8)};
  const std::vector<EventId> one{test::id_of(6), EventId{}, test::id_of(8)};
  const std::vector<EventId> none{test::id_of(9), EventId{}, EventId{}};

  EXPECT_EQ(missing_in_store(found, all, false), "");
  EXPECT_EQ(missing_in_store(found, one, false),
            "the broker has event 7 as " + found[1].message_id + ", and the store doesn't");
  EXPECT_EQ(missing_in_store(found, none, true),
            "the broker has at least 3 events that the store doesn't have: from event 6 as " +
                found[0].message_id + " to event 8 as " + found[2].message_id);
}

}  // namespace
}  // namespace stela::doubt_test
