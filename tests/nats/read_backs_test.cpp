// Reading partitions back, step by step: what is asked for, how much at a time, and what becomes of
// replies that don't come.
#include "read_backs.hpp"
#include "nats/answers.hpp"
#include "nats/api_replies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::nats::read_backs_test {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::message_of;
using test::options_of;
using test::stream_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Kind = Answer::Kind;

class Reading : public ::testing::Test {
 protected:
  explicit Reading(Fence fence = Fence::stream) : options{options_of(fence)} {}

  void begin(PartitionId partition = {}, std::uint64_t from = 1) {
    note(all().begin(++request_, partition, from, now));
  }
  void reply(const ApiRequest& request, const std::string& text) {
    note(all().on_reply(request.number, text, now));
  }
  /// To the oldest request that has none.
  void reply(const std::string& text) {
    const ApiRequest request = requests.front();
    requests.erase(requests.begin());
    reply(request, text);
  }
  /// All messages that are being asked for.
  void reply_with_messages() {
    while (!requests.empty()) {
      const std::string& body = requests.front().body;
      reply(message_of(std::stoull(body.substr(body.find(':') + 1))));
    }
  }
  void note(const Steps& steps) {
    requests.insert(requests.end(), steps.requests.begin(), steps.requests.end());
    answers.insert(answers.end(), steps.answers.begin(), steps.answers.end());
  }
  ReadBacks& all() {
    if (!all_) all_.emplace(options, layout_.emplace(options));
    return *all_;
  }
  /// "$JS.API.STREAM.INFO.SHOP", or with a body behind it.
  std::vector<std::string> asked() const {
    std::vector<std::string> lines;
    for (const ApiRequest& request : requests) {
      lines.push_back(request.subject + (request.body.empty() ? "" : ' ' + request.body));
    }
    return lines;
  }

  PublisherOptions options;
  ReadBacks::Time now{};
  std::vector<ApiRequest> requests;
  std::vector<Answer> answers;

 private:
  std::optional<SubjectLayout> layout_;
  std::optional<ReadBacks> all_;
  std::uint64_t request_ = 0;
};

TEST_F(Reading, AsksForTheStreamThenForItsMessagesAtOnce) {
  begin({}, 5);
  EXPECT_THAT(asked(), ElementsAre("$JS.API.STREAM.INFO.SHOP"));

  reply(stream_of(2, 7));
  EXPECT_THAT(asked(), ElementsAre(R"($JS.API.STREAM.MSG.GET.SHOP {"seq":5})",
                                   R"($JS.API.STREAM.MSG.GET.SHOP {"seq":6})",
                                   R"($JS.API.STREAM.MSG.GET.SHOP {"seq":7})"));
  const std::vector<ApiRequest> three = requests;
  reply(three[2], message_of(7));
  reply(three[0], message_of(5));
  EXPECT_THAT(answers, IsEmpty());
  reply(three[1], error_of(10'037, 404));

  ASSERT_THAT(answers, SizeIs(1));
  const Answer& answer = answers[0];
  EXPECT_EQ(answer.kind, Kind::read_back);
  EXPECT_EQ(answer.request, 1U);
  EXPECT_EQ(answer.first_sequence, 2U);
  EXPECT_EQ(answer.last_sequence, 7U);
  ASSERT_THAT(answer.found, SizeIs(2)) << "the server doesn't have the one between";
  EXPECT_EQ(answer.found[0].broker_sequence, 5U);
  EXPECT_EQ(answer.found[0].message_id, "id-5");
  EXPECT_EQ(answer.found[0].sequence.value(), 50);
  EXPECT_TRUE(answer.found[0].is_ours);
  EXPECT_EQ(answer.found[1].broker_sequence, 7U);
}

TEST_F(Reading, AsksForNoMessageWhereNoneCanBe) {
  begin({}, 1);
  reply(stream_of(1, 0));
  begin({}, 9);
  reply(stream_of(2, 7));
  begin({}, 3);
  reply(stream_of(8, 7));

  EXPECT_THAT(requests, IsEmpty());
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[0].last_sequence, 0U);
  EXPECT_EQ(answers[1].last_sequence, 7U) << "the broker has lost two";
  EXPECT_EQ(answers[2].first_sequence, 8U) << "purged";
}

TEST_F(Reading, AsksForALongRangeInPartsThatStayBounded) {
  begin();
  reply(stream_of(1, 5'000));
  EXPECT_THAT(requests, SizeIs(256));

  reply_with_messages();

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].found, SizeIs(2'000));
  EXPECT_EQ(answers[0].last_sequence, 2'000U);
  EXPECT_TRUE(answers[0].has_more);
}

TEST_F(Reading, BoundsTheBytesInFlight) {
  begin();
  reply(stream_of(1, 100, 3 * 1024 * 1024));
  EXPECT_THAT(requests, SizeIs(1)) << "nobody knows how fast the line is";
  for (std::uint64_t i = 1; i <= 8; ++i) reply(message_of(i, 4 * 1024 * 1024));
  EXPECT_THAT(requests, SizeIs(3)) << "of 4 MiB each, in base64";
  begin(PartitionId{1});
  reply(requests.back(), stream_of(1, 1, 300 * 1024 * 1024));
  const std::size_t before = requests.size();

  reply(message_of(9));
  EXPECT_THAT(requests, SizeIs(before)) << "another one, the large one waits";
  EXPECT_THAT(answers, IsEmpty());
}

TEST_F(Reading, TakesTheLargestMessageSoFarForTheNextOnesSize) {
  begin();
  reply(stream_of(1, 1'000));
  ASSERT_THAT(requests, SizeIs(256));
  for (int i = 1; i <= 250; ++i) {
    const ApiRequest request = requests.front();
    requests.erase(requests.begin());
    reply(request, message_of(static_cast<std::uint64_t>(i), 4 * 1024 * 1024));
  }
  EXPECT_THAT(requests, SizeIs(::testing::Le(10U)));
}

TEST_F(Reading, LetsPartitionsTakeTurns) {
  begin(PartitionId{1});
  begin(PartitionId{2});
  const std::vector<ApiRequest> looks = requests;
  requests.clear();
  reply(looks[0], stream_of(1, 2'000));
  EXPECT_THAT(requests, SizeIs(256));
  reply(looks[1], stream_of(1, 2));
  EXPECT_THAT(requests, SizeIs(256)) << "no room yet";

  for (std::uint64_t i = 1; i <= 4; ++i) reply(message_of(i));

  std::vector<std::string> last = asked();
  last.erase(last.begin(), last.end() - 4);
  EXPECT_THAT(last, ElementsAre(StartsWith("$JS.API.STREAM.MSG.GET.SHOP_p00"),
                                R"($JS.API.STREAM.MSG.GET.SHOP_p01 {"seq":1})",
                                StartsWith("$JS.API.STREAM.MSG.GET.SHOP_p00"),
                                R"($JS.API.STREAM.MSG.GET.SHOP_p01 {"seq":2})"));
}

TEST_F(Reading, AnswersInPartWhenTimeIsShort) {
  begin();
  reply(stream_of(1, 1'000));
  reply(message_of(1));
  now += options.publish_timeout / 2;
  EXPECT_THAT(answers, IsEmpty());

  reply(message_of(2));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].found, SizeIs(2));
  EXPECT_EQ(answers[0].last_sequence, 2U);
  EXPECT_TRUE(answers[0].has_more);
}

TEST_F(Reading, GivesUpARequestWithoutAReplyAndBlocksNoOther) {
  begin(PartitionId{1});
  now += options.publish_timeout / 2;
  begin(PartitionId{2});
  now += options.publish_timeout / 2;

  reply(requests.back(), stream_of(1, 1));
  reply(requests.back(), message_of(1));

  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].kind, Kind::unknown);
  EXPECT_EQ(answers[0].detail, "reading the stream 'SHOP_p00': no reply in time");
  EXPECT_EQ(answers[1].kind, Kind::read_back);
  reply(requests.front(), stream_of(1, 1));
  EXPECT_THAT(answers, SizeIs(2)) << "too late";
}

TEST_F(Reading, GivesThePlacesOfMessagesThatNeverComeToOthers) {
  begin(PartitionId{1});
  reply(stream_of(1, 2'000));
  requests.clear();
  now += options.publish_timeout;
  begin(PartitionId{2});
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].detail, StartsWith("reading message 1 of the stream 'SHOP_p00'"));

  reply(stream_of(1, 2'000));
  // Of little, as nobody knows where the others are: 64 KiB, of 132 bytes and what is around them.
  EXPECT_THAT(requests, SizeIs(64 * 1024 / (132 + 512)));
}

TEST_F(Reading, DropsAReadBackThatANewerOneReplaces) {
  begin();
  reply(stream_of(1, 2'000));
  const std::vector<ApiRequest> old = requests;
  requests.clear();
  begin({}, 2'000);
  for (const ApiRequest& request : old) reply(request, message_of(1));
  EXPECT_THAT(answers, IsEmpty());

  reply(stream_of(1, 2'000));
  reply(message_of(2'000));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].request, 2U);
}

TEST_F(Reading, MakesAMissingStreamIfItMay) {
  begin();
  reply(error_of(10'059, 404));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].kind, Kind::misconfigured);
  EXPECT_THAT(answers[0].detail, StartsWith("there is no JetStream stream 'SHOP'; make it"));

  options.ensure_stream = true;
  begin();
  reply(error_of(10'059, 404));
  ASSERT_THAT(asked(), ElementsAre(StartsWith(R"($JS.API.STREAM.CREATE.SHOP {"name":"SHOP",)"
                                              R"("subjects":["shop.>"],"storage":"file")")));
  reply(stream_of(1, 0));
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[1].kind, Kind::read_back);
}

TEST_F(Reading, TellsTheBrokersTroubleFromAWrongConfiguration) {
  const auto answer_to = [&](const std::string& text) {
    begin();
    reply(text);
    return answers.back();
  };
  EXPECT_EQ(answer_to(error_of(10'118, 500)).kind, Kind::full) << "offline";
  EXPECT_EQ(answer_to(error_of(10'008, 503)).kind, Kind::full) << "no leader";
  EXPECT_EQ(answers.back().detail, "reading the stream 'SHOP': why (JetStream error 10008)");
  EXPECT_EQ(answer_to(error_of(10'039, 503)).kind, Kind::misconfigured) << "no JetStream";
  EXPECT_EQ(answer_to("nonsense").kind, Kind::unknown);
  EXPECT_EQ(answer_to(R"({"type":"x"})").kind, Kind::unknown);
  const std::string counts = R"("persist_mode":"async",)";
  EXPECT_THAT(answer_to(stream_of(1, 1, 9, counts)).detail, HasSubstr("default persist_mode"));

  begin();
  note(all().on_no_responders(requests.front().number, now));
  EXPECT_EQ(answers.back().kind, Kind::misconfigured);
  EXPECT_THAT(answers.back().detail, HasSubstr("$JS.API.STREAM.INFO.SHOP"));
}

TEST_F(Reading, NamesThePartitionWithoutPermission) {
  begin(PartitionId{1});
  begin(PartitionId{2});

  note(all().on_denied("$JS.API.STREAM.INFO.SHOP_p01", "not allowed", now));
  note(all().on_denied("$JS.API.STREAM.INFO.SHOP_p07", "not allowed", now));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].request, 2U);
  EXPECT_EQ(answers[0].kind, Kind::misconfigured);
  EXPECT_EQ(answers[0].failure, FailureClass::permission);
  EXPECT_EQ(answers[0].detail, "reading the stream 'SHOP_p01': not allowed");
}

struct ReadingSubjects : Reading {
  ReadingSubjects() : Reading{Fence::subject} {}
};

TEST_F(ReadingSubjects, AsksForTheLastMessageAlone) {
  begin(PartitionId{1}, 42);
  reply(stream_of(2, 70));
  EXPECT_THAT(asked(), ElementsAre(R"($JS.API.STREAM.MSG.GET.SHOP {"last_by_subj":"shop.p00"})"));
  reply(message_of(42));
  begin(PartitionId{1}, 3);
  reply(stream_of(2, 70));
  reply(error_of(10'037, 404));
  reply(error_of(10'037, 404));

  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].last_sequence, 42U);
  ASSERT_THAT(answers[0].found, SizeIs(1));
  EXPECT_EQ(answers[0].found[0].broker_sequence, 42U);
  EXPECT_EQ(answers[1].first_sequence, 2U);
  EXPECT_EQ(answers[1].last_sequence, 0U);
  EXPECT_THAT(answers[1].found, IsEmpty());
}

TEST_F(ReadingSubjects, GoesFromMessageToMessageUpToTheLast) {
  begin(PartitionId{1}, 3);
  reply(stream_of(2, 70));
  reply(message_of(42));
  EXPECT_THAT(asked(),
              ElementsAre(R"($JS.API.STREAM.MSG.GET.SHOP {"seq":3,"next_by_subj":"shop.p00"})"));
  reply(message_of(17));
  EXPECT_THAT(asked(),
              ElementsAre(R"($JS.API.STREAM.MSG.GET.SHOP {"seq":18,"next_by_subj":"shop.p00"})"));
  reply(message_of(42));

  EXPECT_THAT(requests, IsEmpty());
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].last_sequence, 42U);
  ASSERT_THAT(answers[0].found, SizeIs(2));
  EXPECT_EQ(answers[0].found[0].broker_sequence, 17U);
  EXPECT_EQ(answers[0].found[1].broker_sequence, 42U);
}

// nats-server 2.9 says so once the last message of a subject is deleted.
TEST_F(ReadingSubjects, FindsMessagesThoughTheServerKnowsNoLastOne) {
  begin(PartitionId{1}, 3);
  reply(stream_of(2, 70));
  reply(error_of(10'037, 404));
  reply(message_of(17));
  reply(error_of(10'037, 404));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].last_sequence, 0U);
  ASSERT_THAT(answers[0].found, SizeIs(1));
  EXPECT_EQ(answers[0].found[0].broker_sequence, 17U);
}

TEST_F(ReadingSubjects, EndsInTimeAndLetsTheNextOneContinue) {
  begin(PartitionId{1}, 3);
  reply(stream_of(2, 70));
  reply(message_of(42));
  reply(message_of(3));
  reply(message_of(17));
  now += options.publish_timeout / 2;
  reply(message_of(18));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].last_sequence, 18U);
  EXPECT_TRUE(answers[0].has_more);
  EXPECT_THAT(answers[0].found, SizeIs(3));
}

TEST_F(ReadingSubjects, SaysSoIfTheLastMessageIsRemovedMeanwhile) {
  begin(PartitionId{1}, 3);
  reply(stream_of(2, 70));
  reply(message_of(42));
  reply(error_of(10'037, 404));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].kind, Kind::full);
  EXPECT_EQ(answers[0].detail, "the last message of 'shop.p00' was removed meanwhile");
}

struct OpeningASession : Reading {
  OpeningASession() : Reading{Fence::none} { options.ensure_stream = true; }
};

TEST_F(OpeningASession, ConnectsOnceTheStreamIsThere) {
  note(all().open(now));
  reply(stream_of(1, 2'000));
  note(all().open(now));
  reply(error_of(10'008, 503));
  note(all().open(now));
  reply(error_of(10'065, 400));

  EXPECT_THAT(requests, IsEmpty());
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[0].kind, Kind::connected);
  EXPECT_EQ(answers[1].kind, Kind::disconnected);
  EXPECT_EQ(answers[2].kind, Kind::misconfigured);
  for (const Answer& answer : answers) EXPECT_EQ(answer.request, 0U);
}

}  // namespace
}  // namespace stela::nats::read_backs_test
