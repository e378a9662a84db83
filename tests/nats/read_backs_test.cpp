// Reading partitions back, step by step: what is asked for, how much at a time, and what becomes of
// replies that don't come.
#include "read_backs.hpp"
#include "database/base64.hpp"
#include "nats/answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace stela::nats {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Kind = Answer::Kind;

PublisherOptions options_of(Fence fence) {
  return {.prefix = "shop", .stream = "SHOP", .fence = fence};
}

std::string subjects_of_partitions() {
  std::string all;
  for (int i = 1; i <= 16; ++i) {
    all.append(all.empty() ? "" : ",")
        .append("\"shop_")
        .append(PartitionId{i}.label())
        .append(".>\"");
  }
  return all;
}

/// A stream that is as it should be.
std::string stream_of(std::uint64_t first, std::uint64_t last, std::uint64_t bytes = 100,
                      const std::string& config = {}) {
  const std::uint64_t messages = last + 1 - first;
  return R"({"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"SHOP",)"
         R"("subjects":["shop.>",)" +
         subjects_of_partitions() + R"(],"retention":"limits","max_msgs":-1,)" + config +
         R"("storage":"file","discard":"new"},"state":{"messages":)" + std::to_string(messages) +
         R"(,"bytes":)" + std::to_string(messages * bytes) + R"(,"first_seq":)" +
         std::to_string(first) + R"(,"last_seq":)" + std::to_string(last) +
         R"(,"consumer_count":0},"cluster":null})";
}

std::string message_of(std::uint64_t sequence, std::size_t size = 2) {
  std::string headers;
  base64::append(headers, "NATS/1.0\r\nNats-Msg-Id: id-" + std::to_string(sequence) +
                              "\r\nStela-Store: store\r\nStela-Sequence:  " +
                              std::to_string(sequence * 10) + "\r\n\r\n");
  return R"({"type":"…","message":{"subject":"shop.placed","seq":)" + std::to_string(sequence) +
         R"(,"hdrs":")" + headers + R"(","data":")" + std::string(size, 'A') +
         R"(","time":"2026-11-22T10:00:00Z"}})";
}

std::string error_of(int code, int status) {
  return R"({"type":"…","error":{"code":)" + std::to_string(status) + R"(,"err_code":)" +
         std::to_string(code) + R"(,"description":"why"}})";
}

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
  std::optional<Layout> layout_;
  std::optional<ReadBacks> all_;
  std::uint64_t request_ = 0;
};

TEST_F(Reading, AsksWhatTheStreamIsAndThenForItsMessagesAtOnce) {
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
  EXPECT_EQ(answers[0].last_sequence, 2'000U) << "as if the stream ended here";
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

TEST_F(Reading, AnswersWithWhatItHasWhenTimeIsShort) {
  begin();
  reply(stream_of(1, 1'000));
  reply(message_of(1));
  now += options.publish_timeout / 2;
  EXPECT_THAT(answers, IsEmpty());

  reply(message_of(2));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].found, SizeIs(2));
  EXPECT_EQ(answers[0].last_sequence, 2U);
}

TEST_F(Reading, GivesUpARequestWithoutAReplyAndHoldsNobodyElse) {
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
  EXPECT_THAT(requests, SizeIs(256));
}

TEST_F(Reading, DropsWhatANewerReadBackOfThePartitionReplaces) {
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

TEST_F(Reading, SaysOfTheRightPartitionWhatIsNotAllowed) {
  begin(PartitionId{1});
  begin(PartitionId{2});

  note(all().on_denied("$JS.API.STREAM.INFO.SHOP_p01", "not allowed", now));
  note(all().on_denied("$JS.API.STREAM.INFO.SHOP_p07", "not allowed", now));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].request, 2U);
  EXPECT_EQ(answers[0].kind, Kind::misconfigured);
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
TEST_F(ReadingSubjects, FindsWhatStandsThereThoughTheServerKnowsOfNoLastMessage) {
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

TEST_F(ReadingSubjects, EndsInTimeAndLetsTheNextOneGoOn) {
  begin(PartitionId{1}, 3);
  reply(stream_of(2, 70));
  reply(message_of(42));
  reply(message_of(3));
  reply(message_of(17));
  now += options.publish_timeout / 2;
  reply(message_of(18));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].last_sequence, 18U);
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

/// Sixteen partitions, read back over a line by a relay that asks again a second after an answer
/// that was too late.
class ReadingOverASlowLine : public ::testing::Test {
 protected:
  static constexpr int partitions = 16;
  static constexpr std::uint64_t last = 40;
  static constexpr std::size_t payload = 64 * 1024;
  static constexpr std::int64_t bytes_a_second = 1'000'000;

  ReadingOverASlowLine() {
    for (int i = 1; i <= partitions; ++i) at(0ms, [this, i] { begin(i); });
  }
  /// Until everything has been read, or so much time has passed.
  void run(std::chrono::seconds limit) {
    while (!events_.empty() && events_.begin()->first <= start_ + limit && done < partitions) {
      now = events_.begin()->first;
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }

  const PublisherOptions options = options_of(Fence::stream);
  ReadBacks::Time now{};
  int done = 0;
  int missed = 0;
  std::string why;
  std::int64_t sent_bytes = 0;

 private:
  struct Partition {
    std::uint64_t from = 1;
    std::uint64_t request = 0;
  };

  void at(std::chrono::nanoseconds wait, std::function<void()> event) {
    events_.emplace(now + wait, std::move(event));
  }
  void begin(int index) {
    Partition& partition = partitions_[index];
    const std::uint64_t request = partition.request = ++last_request_;
    at(options.publish_timeout, [this, index, request] {
      if (partitions_[index].request == request) miss(index);
    });
    pass(all_.begin(request, PartitionId{index}, partition.from, now));
  }
  void miss(int index) {
    ++missed;
    partitions_[index].request = 0;
    at(1s, [this, index] { begin(index); });
  }
  void pass(const Steps& steps) {
    for (const ApiRequest& request : steps.requests) serve(request);
    for (const Answer& answer : steps.answers) take(answer);
  }
  void serve(const ApiRequest& request) {
    const bool is_read = !request.body.empty();
    const std::string reply =
        is_read ? message_of(std::stoull(request.body.substr(request.body.find(':') + 1)), payload)
                : stream_of(1, last, payload);
    sent_bytes += static_cast<std::int64_t>(reply.size());
    free_from_ = std::max(free_from_, now) +
                 std::chrono::nanoseconds{static_cast<std::int64_t>(reply.size()) *
                                          (1'000'000'000 / bytes_a_second)};
    at(free_from_ - now,
       [this, number = request.number, reply] { pass(all_.on_reply(number, reply, now)); });
  }
  void take(const Answer& answer) {
    for (auto& [index, partition] : partitions_) {
      if (partition.request != answer.request) continue;
      if (answer.kind != Kind::read_back) {
        why = answer.detail;
        return miss(index);
      }
      partition.from = answer.last_sequence + 1;
      partition.request = 0;
      if (partition.from > last) {
        ++done;
      } else {
        begin(index);
      }
      return;
    }
  }

  const Layout layout_{options};
  ReadBacks all_{options, layout_};
  const ReadBacks::Time start_{};
  ReadBacks::Time free_from_{};
  std::multimap<ReadBacks::Time, std::function<void()>> events_;
  std::map<int, Partition> partitions_;
  std::uint64_t last_request_ = 0;
};

TEST_F(ReadingOverASlowLine, AsksForNothingThatIsLateAlready) {
  run(600s);

  EXPECT_EQ(done, partitions);
  EXPECT_LE(missed, partitions) << why;
  // As much as there is, and half of that again.
  EXPECT_LE(sent_bytes, partitions * std::int64_t{last} * payload * 3 / 2);
}

}  // namespace
}  // namespace stela::nats
