// A stream with several replicas is read from its leader, or not at all.
#include "nats/api_replies.hpp"
#include "support/messages.hpp"
#include "support/nats_server.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nats/nats.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stela::leader_reads_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// The servers of a cluster, as a client hears them: a stream SHOP with three replicas, in which
/// message N is of event 10 N.
class Cluster {
 public:
  Cluster() {
    require(natsConnection_ConnectTo(&connection_, server_.url().c_str()));
    require(natsConnection_Subscribe(&subscription_, connection_, "$JS.API.>", answer, this));
    require(natsConnection_Flush(connection_));
  }
  ~Cluster() {
    natsConnection_Close(connection_);
    natsSubscription_Destroy(subscription_);
    natsConnection_Destroy(connection_);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const std::string& url() const { return server_.url(); }
  std::vector<std::string> asked() const {
    const std::lock_guard lock{mutex_};
    return asked_;
  }

  // Set before it is asked.
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  std::set<std::uint64_t> erased;
  /// Message to subject, where it isn't shop.placed.
  std::map<std::uint64_t, std::string> subjects;
  std::string leader = "n1";
  /// Called before each request is answered: what it returns stands in the answer's place.
  std::function<std::optional<std::string>(const std::string& subject)> before =
      [](const std::string&) { return std::nullopt; };
  static constexpr const char* silence = "";

 private:
  static void require(natsStatus status) { ASSERT_EQ(status, NATS_OK); }

  std::string info() const {
    const std::uint64_t count = last + 1 - first - erased.size();
    return R"({"config":{"name":"SHOP","subjects":["shop.>"],"retention":"limits",)"
           R"("storage":"file","num_replicas":3},"created":"2026-01-01T00:00:00Z",)"
           R"("state":{"messages":)" +
           std::to_string(count) + R"(,"bytes":)" + std::to_string(count * 100) +
           R"(,"first_seq":)" + std::to_string(first) + R"(,"last_seq":)" + std::to_string(last) +
           R"(},"cluster":{"name":"C","leader":")" + leader + R"("}})";
  }
  std::string message(std::uint64_t sequence) const {
    const bool is_there = sequence >= first && sequence <= last && !erased.contains(sequence);
    if (!is_there) return nats::test::error_of(10'037, 404);
    std::string text = nats::test::message_of(sequence, 4);
    const auto subject = subjects.find(sequence);
    if (subject != subjects.end()) {
      const std::string usual = "shop.placed";
      text.replace(text.find(usual), usual.size(), subject->second);
    }
    return text;
  }
  std::string answer_to(const std::string& subject, const std::string& body) {
    const std::lock_guard lock{mutex_};
    asked_.push_back(subject);
    if (const auto instead = before(subject)) return *instead;
    if (subject == "$JS.API.STREAM.INFO.SHOP") return info();
    if (subject == "$JS.API.STREAM.MSG.GET.SHOP") {
      return message(std::stoull(body.substr(body.find(':') + 1)));
    }
    return nats::test::error_of(10'000, 500);
  }
  static void answer(natsConnection* connection, natsSubscription*, natsMsg* message, void* self) {
    const std::string body{natsMsg_GetData(message),
                           static_cast<std::size_t>(natsMsg_GetDataLength(message))};
    const std::string reply =
        static_cast<Cluster*>(self)->answer_to(natsMsg_GetSubject(message), body);
    if (reply != silence) {
      natsConnection_PublishString(connection, natsMsg_GetReply(message), reply.c_str());
    }
    natsMsg_Destroy(message);
  }

  test::NatsServer server_{"jetstream: false"};
  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
};

class ReplicatedStream : public ::testing::Test {
 protected:
  std::vector<std::uint64_t> read(Fence fence = Fence::stream) {
    nats::StreamReader reader{{.url = cluster.url(),
                               .prefix = "shop",
                               .stream = "SHOP",
                               .fence = fence,
                               .publish_timeout = 300ms}};
    std::vector<std::uint64_t> found;
    reader.read({}, [&](const FoundMessage& message) {
      EXPECT_TRUE(message.is_ours);
      EXPECT_EQ(message.sequence.value(), static_cast<std::int64_t>(message.broker_sequence) * 10);
      found.push_back(message.broker_sequence);
    });
    return found;
  }
  std::string failure() {
    return test::message_of<BrokerFailed>([this] { read(); });
  }
  std::vector<std::uint64_t> all() const {
    std::vector<std::uint64_t> sequences;
    for (std::uint64_t i = cluster.first; i <= cluster.last; ++i) {
      if (!cluster.erased.contains(i)) sequences.push_back(i);
    }
    return sequences;
  }
  /// Does it when this message is asked for, before it is answered.
  void at_message(int number, std::function<std::optional<std::string>()> act) {
    cluster.before = [number, act, count = 0](const std::string& subject) mutable {
      const bool is_read = subject.find("MSG.GET") != std::string::npos;
      return is_read && ++count == number ? act() : std::nullopt;
    };
  }

  Cluster cluster;
};

TEST_F(ReplicatedStream, IsReadFromItsLeaderWholeAndInOrder) {
  cluster.first = 501;
  cluster.last = 4'000;
  for (std::uint64_t i = 1'000; i < 1'700; ++i) cluster.erased.insert(i);
  cluster.erased.insert(4'000);
  EXPECT_EQ(read(), all());
  EXPECT_THAT(cluster.asked(), Each(StartsWith("$JS.API.STREAM."))) << "no consumer";
}

TEST_F(ReplicatedStream, IsReadBySubjectWhereThatIsTheFence) {
  cluster.last = 600;
  for (std::uint64_t i = 1; i <= 600; i += 3) cluster.subjects[i] = "shop.all";
  const auto found = read(Fence::subject);
  EXPECT_THAT(found, SizeIs(200));
  for (const std::uint64_t each : found) EXPECT_TRUE(cluster.subjects.contains(each)) << each;
}

TEST_F(ReplicatedStream, IsReadOnceItsLeaderAnswersAgain) {
  cluster.last = 2'000;
  for (const std::string& trouble :
       {std::string{Cluster::silence}, nats::test::error_of(10'008, 503)}) {
    at_message(700, [&] { return trouble; });
    EXPECT_EQ(read(), all());
  }
  cluster.before = [count = 0](const std::string& subject) mutable -> std::optional<std::string> {
    const bool is_read = subject.find("MSG.GET") != std::string::npos;
    if (!is_read || ++count > 300) return std::nullopt;
    return nats::test::error_of(10'008, 503);
  };
  EXPECT_EQ(read(), all()) << "a try doesn't take the replies of the one before";
  cluster.before = [is_first = true](const std::string&) mutable -> std::optional<std::string> {
    if (!std::exchange(is_first, false)) return std::nullopt;
    return nats::test::error_of(10'008, 503);
  };
  EXPECT_EQ(read(), all());
}

TEST_F(ReplicatedStream, IsNotReportedAsReadWithoutAnAnswer) {
  cluster.last = 600;
  cluster.before = [](const std::string& subject) -> std::optional<std::string> {
    if (subject.find("MSG.GET") == std::string::npos) return std::nullopt;
    return nats::test::error_of(10'008, 503);
  };
  EXPECT_THAT(failure(), AllOf(HasSubstr("'SHOP'"), HasSubstr("run this again")));
}

TEST_F(ReplicatedStream, IsNotCalledReadWhenTheLeaderRefuses) {
  cluster.last = 600;
  at_message(500, [] { return nats::test::error_of(10'039, 400); });
  EXPECT_THAT(failure(), HasSubstr("10039"));
}

TEST_F(ReplicatedStream, IsNotCalledReadWhenAnotherServerLeads) {
  cluster.last = 600;
  at_message(500, [this] {
    cluster.leader = "n2";
    return std::nullopt;
  });
  EXPECT_THAT(failure(), AllOf(HasSubstr("'SHOP'"), HasSubstr("Run this again")));
}

TEST_F(ReplicatedStream, IsNotCalledReadWhenItsEndGoesBack) {
  cluster.last = 600;
  at_message(500, [this] {
    cluster.last = 550;
    return std::nullopt;
  });
  EXPECT_THAT(failure(), HasSubstr("Run this again"));
}

TEST_F(ReplicatedStream, IsNotCalledReadWhenAServerHadLedThatLacksSome) {
  cluster.last = 600;
  at_message(500, [] { return nats::test::error_of(10'037, 404); });
  EXPECT_THAT(failure(), HasSubstr("Run this again"));
}

TEST_F(ReplicatedStream, MayGrowAndBePurgedMeanwhile) {
  cluster.last = 600;
  at_message(300, [this] {
    cluster.first = 301;
    cluster.last = 700;
    return std::nullopt;
  });
  EXPECT_THAT(read(), SizeIs(599));
}

TEST_F(ReplicatedStream, MayBeEmpty) {
  EXPECT_THAT(read(), IsEmpty());
}

}  // namespace
}  // namespace stela::leader_reads_test
