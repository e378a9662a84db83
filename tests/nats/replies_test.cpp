// What the errors of every nats-server mean to the relay.
#include "replies.hpp"
#include "nats/answers.hpp"

#include <stela/framework/codec/codec_error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

namespace stela::nats::replies_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Kind = Answer::Kind;

Answer reply(const std::string& text) {
  // Messages are freed by a thread of the library.
  check(nats_Open(-1), "opening the library");
  natsMsg* raw = nullptr;
  check(natsMsg_Create(&raw, "inbox", nullptr, text.data(), static_cast<int>(text.size())),
        "making a reply");
  const MessageHandle message{raw};
  return read_reply(message.get());
}

/// The answer to a publish that the server refuses so.
Answer reply(int code, int status, const std::string& description = "why") {
  return reply(R"({"error":{"code":)" + std::to_string(status) + R"(,"err_code":)" +
               std::to_string(code) + R"(,"description":")" + description +
               R"("},"stream":"SHOP","seq":0})");
}

struct KnownError {
  int code = 0;
  int status = 0;
  std::string kind = {};
  std::string name = {};
};

std::vector<KnownError> known_errors() {
  std::ifstream file{STELA_SOURCE_DIR "/tests/nats/jetstream_errors.txt"};
  std::vector<KnownError> errors;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words{line};
    KnownError& error = errors.emplace_back();
    words >> error.code >> error.status >> error.kind >> error.name;
  }
  return errors;
}

TEST(BrokersAnswers, KeepAsMuchOfTheBrokersWordsAsPeopleRead) {
  EXPECT_EQ(reply(10077, 503, std::string(500, 'x')).detail,
            std::string(500, 'x') + " (JetStream error 10077)");
  std::string vast = "x";
  for (int i = 0; i < 10'000; ++i) vast += "é";
  const std::string kept = reply(10077, 503, vast).detail;
  EXPECT_EQ(kept, vast.substr(0, 497) + "... (JetStream error 10077)");
}

TEST(BrokersAnswers, SayThatAMessageIsADuplicate) {
  const Answer answer = reply(R"({"stream":"SHOP","seq":7,"duplicate":true})");
  EXPECT_EQ(answer.kind, Kind::stored_before);
  EXPECT_EQ(answer.broker_sequence, 7U);
  EXPECT_THAT(answer.detail, HasSubstr("took it for a duplicate"));
}

TEST(BrokersErrors, MeanWhatTheTableSays) {
  const auto errors = known_errors();
  ASSERT_THAT(errors, SizeIs(226)) << "from 10002 to 10227 without a gap";
  for (const KnownError& error : errors) {
    const Answer answer = reply(error.code, error.status);
    EXPECT_EQ(stela::test::to_string(answer.kind), error.kind) << error.code << ' ' << error.name;
    EXPECT_THAT(answer.detail, HasSubstr("why (JetStream error " + std::to_string(error.code)));
  }
}

TEST(BrokersErrors, OfANewerServerAreNeverCharged) {
  for (const int status : {400, 404, 409, 412, 429, 500, 503}) {
    for (int code = 10'228; code < 10'300; ++code) {
      ASSERT_EQ(reply(code, status).kind, Kind::full) << code << ' ' << status;
    }
    // 2.9 answers so in a cluster where a store is full.
    const Answer answer = reply(0, status);
    EXPECT_EQ(answer.kind, Kind::full) << status;
    EXPECT_THAT(answer.detail, HasSubstr(std::to_string(status)));
  }
}

TEST(BrokersErrors, OfAStoreAreAMessagesOwnOnlyIfItIsTooLarge) {
  EXPECT_EQ(reply(10'077, 503, "maximum messages exceeded").kind, Kind::full);
  EXPECT_EQ(reply(10'077, 503, "insufficient resources").kind, Kind::full);
  EXPECT_EQ(reply(10'077, 503, "message too large").kind, Kind::refused);
  EXPECT_EQ(reply(10'077, 503, "message to large").kind, Kind::refused);
}

TEST(BrokersErrors, HaveTheClassThatTellsWhatHelps) {
  const auto class_of = [](int code, const char* description = "why") {
    return reply(code, 400, description).failure;
  };
  EXPECT_EQ(class_of(10'059), FailureClass::stream_missing);
  EXPECT_EQ(class_of(10'109), FailureClass::stream_sealed);
  EXPECT_EQ(class_of(10'060), FailureClass::subject);
  EXPECT_EQ(class_of(10'113), FailureClass::stream_settings);
  EXPECT_EQ(class_of(10'054), FailureClass::too_large);
  EXPECT_EQ(class_of(10'097), FailureClass::other) << "no setting changes the size of headers";
  EXPECT_EQ(class_of(10'077, "message to large"), FailureClass::too_large);
  EXPECT_EQ(class_of(10'077, "maximum bytes exceeded"), FailureClass::stream_full);
  EXPECT_EQ(class_of(10'077, "no space left on device"), FailureClass::other);
  EXPECT_EQ(class_of(10'111), FailureClass::rejected);
  EXPECT_EQ(class_of(10'008), FailureClass::other);
}

/// The error numbers of each row of the page's table of answers.
std::vector<std::set<int>> documented_rows() {
  std::ifstream file{STELA_SOURCE_DIR "/docs/reference/wire-format.md"};
  std::vector<std::set<int>> rows;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_inside = line == "## What the server's answers mean";
    if (!is_inside || !line.starts_with("| ")) continue;
    std::set<int> row;
    for (std::size_t at = 0; (at = line.find("10", at)) != std::string::npos; at += 5) {
      row.insert(std::stoi(line.substr(at, 5)));
    }
    if (!row.empty()) rows.push_back(row);
  }
  return rows;
}

TEST(BrokersErrors, AreDocumented) {
  std::map<std::string, std::set<int>> kinds;
  for (const KnownError& error : known_errors()) kinds[error.kind].insert(error.code);
  kinds.erase("full");
  const auto rows = documented_rows();

  EXPECT_THAT(rows, SizeIs(kinds.size()));
  for (const auto& [kind, codes] : kinds) EXPECT_THAT(rows, Contains(codes)) << kind;
}

TEST(Replies, GiveAMessageAsTheStreamHasIt) {
  const auto read = read_whole_message(
      R"({"message":{"subject":"shop.a","seq":7,)"
      R"("hdrs":"TkFUUy8xLjANCmNlLWlkOiBhDQpjZS10eXBlOiAgb3JkZXIucGxhY2VkDQpjZS1pZDogYg0KDQo=",)"
      R"("data":"eyJuIjoAMX0=","time":"2026-11-23T10:20:30.000000456Z"}})");

  ASSERT_TRUE(std::holds_alternative<StoredMessage>(read));
  const auto& message = std::get<StoredMessage>(read);
  EXPECT_EQ(message.sequence, 7U);
  EXPECT_EQ(message.subject, "shop.a");
  EXPECT_EQ(message.headers,
            (KeptHeaders::Map{{"ce-id", "a"}, {"ce-id", "b"}, {"ce-type", "order.placed"}}));
  EXPECT_EQ(message.payload, (std::string{"{\"n\":\0"
                                          "1}",
                                          8}));
  EXPECT_EQ(message.time, 1'795'429'230'000'000'456);
}

TEST(Replies, OfAMessageThatCannotBeReadAreToldApart) {
  EXPECT_THROW(read_whole_message(R"({"message":{"seq":7,"data":"e30="}})"), codec::DecodeError);
  EXPECT_THROW(
      read_whole_message(R"({"message":{"seq":7,"data":"?","time":"2026-11-23T00:00:00Z"}})"),
      codec::DecodeError);
  const auto read = read_whole_message(R"({"error":{"code":404,"err_code":10037}})");
  ASSERT_TRUE(std::holds_alternative<ApiError>(read));
  EXPECT_EQ(std::get<ApiError>(read).code, 10037);
}

}  // namespace
}  // namespace stela::nats::replies_test
