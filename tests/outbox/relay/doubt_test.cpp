// What a read-back says about where a partition stands.
#include "relay/doubt.hpp"
#include "outbox/relay/lane_bench.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace stela::doubt_test {
namespace {

using relay::missing_in_store;
using relay::Position;
using test::ours;
using Kind = relay::Verdict::Kind;

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
  Kind kind;
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
    {"AnEmptyStream", Fence::stream, {}, {}, Kind::agrees},
    {"TheKnownMessage", Fence::stream, known(5, 5), {1, 5, {ours(5, 5)}}, Kind::agrees},
    {"ARemovedLastMessage", Fence::stream, known(5, 5), {1, 5}, Kind::agrees},
    {"APurgedStream", Fence::stream, known(5, 5), {6, 5}, Kind::agrees},
    {"AnAdoptedMessage", Fence::stream, adopted(5, 5), {1, 5, {foreign(5)}}, Kind::agrees},
    {"FirstMessages", Fence::stream, {}, {1, 2, {ours(1, 1), ours(2, 2)}}, Kind::ours_follow, 2},
    {"ALaterMessage",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5), ours(6, 6)}},
     Kind::ours_follow,
     1},
    {"ALaterMessageOnly", Fence::stream, known(5, 5), {1, 6, {ours(6, 6)}}, Kind::ours_follow, 1},
    {"TheKnownMessageAfterOthers",
     Fence::stream,
     known(5, 5),
     {1, 5, {ours(4, 4), ours(5, 5)}},
     Kind::agrees},
    {"ALaterMessageAfterOthers",
     Fence::stream,
     known(5, 5),
     {1, 6, {foreign(4), ours(5, 5), ours(6, 6)}},
     Kind::ours_follow,
     1},
    {"ARepetition",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5), sent_again(2, 6)}},
     Kind::ours_follow,
     1},
    {"AMessageAfterAnAdoptedOne",
     Fence::stream,
     adopted(5, 5),
     {1, 6, {foreign(5), ours(6, 6)}},
     Kind::ours_follow,
     1},
    {"AShorterStream", Fence::stream, known(5, 5), {1, 4}, Kind::lost},
    {"AStreamThatWasMadeAgain", Fence::stream, known(5, 5), {0, 0}, Kind::lost},
    {"AShorterStreamAfterAnAdoption", Fence::stream, adopted(5, 5), {1, 4}, Kind::lost},
    {"ANeighbour",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5), foreign(6)}},
     Kind::foreign_writer,
     1},
    {"AnotherStore", Fence::stream, {}, {1, 1, {of_another_store(1, 1)}}, Kind::foreign_writer, 1},
    {"ANeighbourInAnEmptyPartition",
     Fence::stream,
     {},
     {1, 1, {foreign(1)}},
     Kind::foreign_writer,
     1},
    {"AnotherMessageInItsPlace",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(7, 5), ours(8, 6)}},
     Kind::store_went_back,
     1},
    {"AnotherStreamInItsPlace",
     Fence::stream,
     known(5, 5),
     {1, 5, {foreign(5)}},
     Kind::store_went_back},
    {"TheKnownEventSentAgain",
     Fence::stream,
     known(5, 5),
     {1, 5, {sent_again(5, 5)}},
     Kind::store_went_back},
    {"AHoleAfterTheKnownMessage",
     Fence::stream,
     known(5, 5),
     {1, 7, {ours(5, 5), ours(7, 7)}},
     Kind::unreadable,
     1},
    {"AHoleBeforeTheFirstMessage", Fence::stream, {}, {1, 2, {ours(2, 2)}}, Kind::unreadable, 1},
    {"AHoleAtTheEnd",
     Fence::stream,
     known(5, 5),
     {1, 7, {ours(5, 5), ours(6, 6)}},
     Kind::unreadable,
     1},
    {"ANewMessageThatWasRemoved",
     Fence::stream,
     known(5, 5),
     {1, 6, {ours(5, 5)}},
     Kind::unreadable},
    {"ANeighbourAfterAHole",
     Fence::stream,
     known(5, 5),
     {1, 7, {ours(5, 5), foreign(7)}},
     Kind::foreign_writer,
     1},

    // All partitions share a stream.
    {"AnEmptySubject", Fence::subject, {}, {}, Kind::agrees},
    {"AnEmptySubjectInAUsedStream", Fence::subject, {}, {30, 0}, Kind::agrees},
    {"ItsKnownMessage", Fence::subject, known(5, 9), {1, 9, {ours(5, 9)}}, Kind::agrees},
    {"ItsKnownMessageWithoutItsEnd",
     Fence::subject,
     known(5, 9),
     {1, 0, {ours(5, 9)}},
     Kind::agrees},
    {"ARemovedKnownMessage", Fence::subject, known(5, 9), {1, 9}, Kind::agrees},
    {"AnAdoptedMessageOfASubject",
     Fence::subject,
     adopted(5, 9),
     {1, 9, {foreign(9)}},
     Kind::agrees},
    {"LaterMessagesAmongOthers",
     Fence::subject,
     known(5, 9),
     {1, 30, {ours(5, 9), ours(6, 20), ours(7, 30)}},
     Kind::ours_follow,
     2},
    {"LaterMessagesWithoutTheirEnd",
     Fence::subject,
     known(5, 9),
     {1, 0, {ours(5, 9), ours(6, 20)}},
     Kind::ours_follow,
     1},
    {"ALaterMessageThoughItsOwnIsGone",
     Fence::subject,
     known(5, 9),
     {12, 20, {ours(6, 20)}},
     Kind::ours_follow,
     1},
    {"ARepetitionThoughItsOwnIsGone",
     Fence::subject,
     known(5, 9),
     {12, 20, {sent_again(2, 20)}},
     Kind::ours_follow,
     1},
    {"AllIsDropped", Fence::subject, known(5, 9), {10, 0}, Kind::aged_out},
    {"TheLastOneIsRemovedFromALivingStream", Fence::subject, known(5, 9), {9, 0}, Kind::lost},
    {"OnlyEarlierMessages", Fence::subject, known(5, 9), {1, 7}, Kind::lost},
    {"ANeighbourInItsSubject",
     Fence::subject,
     known(5, 9),
     {1, 12, {ours(5, 9), foreign(12)}},
     Kind::foreign_writer,
     1},
    {"AnotherStoreInItsSubject",
     Fence::subject,
     known(5, 9),
     {1, 12, {ours(5, 9), of_another_store(6, 12)}},
     Kind::foreign_writer,
     1},
    {"AnotherMessageInItsPlaceInASubject",
     Fence::subject,
     known(5, 9),
     {1, 9, {ours(3, 9)}},
     Kind::store_went_back},
    {"AnEarlierEventInAnotherHistory",
     Fence::subject,
     known(9, 5),
     {1, 7, {ours(6, 6), ours(7, 7)}},
     Kind::store_went_back,
     2},
    {"AnEarlierEventAfterTheKnownMessage",
     Fence::subject,
     known(9, 5),
     {1, 7, {ours(9, 5), ours(6, 7)}},
     Kind::ours_follow,
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

  EXPECT_EQ(verdict.kind, row.kind);
  EXPECT_EQ(verdict.following.size(), row.following);
}

INSTANTIATE_TEST_SUITE_P(Of, ReadBack, ::testing::ValuesIn(table),
                         [](const auto& row) { return std::string{row.param.name}; });

TEST(ReadBacks, MeetEveryVerdict) {
  std::set<Kind> met;
  for (const Case& row : table) met.insert(row.kind);
  EXPECT_EQ(met, (std::set<Kind>{Kind::agrees, Kind::ours_follow, Kind::aged_out, Kind::lost,
                                 Kind::foreign_writer, Kind::store_went_back, Kind::unreadable}));
}

TEST(ReadBacks, StopThePartitionOfWhichNobodyCanTellWhereItStands) {
  EXPECT_EQ(relay::Verdict{Kind::agrees}.stop_reason(), std::nullopt);
  EXPECT_EQ(relay::Verdict{Kind::ours_follow}.stop_reason(), std::nullopt);
  EXPECT_EQ(relay::Verdict{Kind::aged_out}.stop_reason(), std::nullopt);
  EXPECT_EQ(relay::Verdict{Kind::lost}.stop_reason(), StopReason::broker_lost);
  EXPECT_EQ(relay::Verdict{Kind::foreign_writer}.stop_reason(), StopReason::foreign_writer);
  EXPECT_EQ(relay::Verdict{Kind::store_went_back}.stop_reason(), StopReason::store_went_back);
  EXPECT_EQ(relay::Verdict{Kind::unreadable}.stop_reason(), StopReason::unreadable);
}

std::string place_of(const Position& position, const Broker& broker) {
  const Answer answer{.kind = Answer::Kind::read_back,
                      .first_sequence = broker.first,
                      .last_sequence = broker.last,
                      .found = broker.found};
  const relay::Verdict verdict = compare(position, answer, Fence::stream, "the-store");
  const std::string at =
      verdict.place == nullptr ? "none" : std::to_string(verdict.place->broker_sequence);
  return at + (is_displaced(position, verdict) ? ", displaced" : "");
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
