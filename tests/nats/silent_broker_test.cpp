// A broker that takes connections and falls silent: whoever connects gives up in time, tries
// another server, and can be stopped.
#include "nats/answers.hpp"
#include "nats/shop.hpp"
#include "support/messages.hpp"
#include "support/silent_server.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <stop_token>
#include <string>
#include <thread>

namespace stela::silent_broker_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using test::SilentServer;
using ::testing::HasSubstr;
using After = SilentServer::After;
using Kind = Answer::Kind;
using Steady = std::chrono::steady_clock;

/// What the process has used of its processors.
std::chrono::duration<double> processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

class SilentBroker : public ::testing::TestWithParam<After> {
 protected:
  SilentServer server{GetParam()};
};

std::string name_of(const ::testing::TestParamInfo<After>& each) {
  constexpr std::array names{"AfterAccept", "AfterInfo", "AfterPing"};
  return names[static_cast<std::size_t>(each.param)];
}

INSTANTIATE_TEST_SUITE_P(Each, SilentBroker,
                         ::testing::Values(After::accept, After::info, After::ping), name_of);

TEST_P(SilentBroker, IsGivenUpWithinTheTimeoutWithoutASpinningCore) {
  const auto begun = Steady::now();
  const auto used = processor_time();
  {
    test::Answers answers;
    nats::Publisher publisher{{.url = server.url()}};
    publisher.connect(1, answers);
    const Answer answer = answers.wait_for(0);

    EXPECT_EQ(answer.kind, Kind::disconnected);
    EXPECT_THAT(answer.detail, HasSubstr(server.url() + ": Timeout"));
    EXPECT_LT(Steady::now() - begun, 4s) << "2 s are the default";
    publisher.connect(2, answers);
    ASSERT_TRUE(test::eventually([&] { return server.connections() == 2; }));
  }
  EXPECT_LT(Steady::now() - begun, 8s) << "what is being connected is given up as well";
  EXPECT_LT(processor_time() - used, 1s);
}

TEST_P(SilentBroker, IsPassedOverForAnotherServerOfTheList) {
  const test::NatsServer sound;
  for (int i = 0; i < 4; ++i) {
    test::Answers answers;
    nats::Publisher publisher{{.url = server.url() + "," + sound.url(), .connect_timeout = 200ms}};
    publisher.connect(1, answers);
    EXPECT_EQ(answers.wait_for(0).kind, Kind::connected);
  }
}

TEST_P(SilentBroker, DoesNotKeepARelayFromStopping) {
  test::TempDir dir;
  std::jthread running;
  Steady::time_point asked;
  {
    test::Shop shop{dir.file("shop.db"), server.url()};
    shop.place("1");
    running = std::jthread{[&](std::stop_token stop) { shop.relay.run(stop); }};
    ASSERT_TRUE(test::eventually([&] { return server.connections() > 0; }));
    asked = Steady::now();
    running.request_stop();
    running.join();
  }
  EXPECT_LT(Steady::now() - asked, 5s);
}

TEST_P(SilentBroker, IsGivenUpByConsumersAndReaders) {
  test::TempDir dir;
  test::Ledger ledger{dir.file("effects.db")};
  const auto begun = Steady::now();

  EXPECT_THAT(message_of<BrokerFailed>([&] {
                nats::StreamReader{{.url = server.url(), .connect_timeout = 200ms}}.read(
                    PartitionId{}, [](const FoundMessage&) {});
              }),
              HasSubstr("Timeout"));
  nats::Consumer consumer{ledger.store,
                          {.url = server.url(), .connect_timeout = 200ms, .name = "effects"}};
  EXPECT_THROW(consumer.run_once(), BrokerFailed);
  EXPECT_LT(Steady::now() - begun, 3s);
}

TEST(Connecting, LeavesTheLocksOnFilesAlone) {
  test::TempDir dir;
  const int locked = ::open(dir.file("locked").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(locked, F_SETLK, &whole), 0);

  test::Answers answers;
  nats::Publisher publisher{{.url = "nats://127.0.0.1:1"}};
  publisher.connect(1, answers);
  EXPECT_EQ(answers.wait_for(0).kind, Kind::disconnected);

  // Asks as somebody else would.
  const int other = ::open(dir.file("locked").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(fcntl(other, F_OFD_GETLK, &whole), 0);
  EXPECT_EQ(whole.l_type, F_WRLCK);
  close(other);
  close(locked);
}

/// No memory is large enough for the stack of a new thread.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t usual_;
};

TEST(Connecting, WaitsWhereTheProcessCanHaveNoMoreThreads) {
  const test::NatsServer sound;
  test::Answers answers;
  nats::Publisher publisher{{.url = sound.url()}};
  publisher.connect(1, answers);
  // nats.c has the threads that it begins with.
  ASSERT_EQ(answers.wait_for(0).kind, Kind::connected);
  publisher.disconnect();
  answers.clear();
  {
    const NoThreads none;
    publisher.connect(2, answers);
    const Answer answer = answers.wait_for(0);
    EXPECT_EQ(answer.kind, Kind::disconnected);
    EXPECT_THAT(answer.detail, HasSubstr("there is no thread to connect with"));
  }
  answers.clear();
  publisher.connect(3, answers);
  EXPECT_EQ(answers.wait_for(0).kind, Kind::connected);
}

/// Two ends of a connection that isn't Stela's, to a port of 127.0.0.2.
class OthersConnection {
 public:
  explicit OthersConnection(int port) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    address_.sin_port = htons(static_cast<std::uint16_t>(port));
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener_, any(), sizeof address_), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
  }
  ~OthersConnection() {
    for (const int each : {listener_, near_, far_}) close(each);
  }
  OthersConnection(const OthersConnection&) = delete;
  OthersConnection& operator=(const OthersConnection&) = delete;

  void open() {
    near_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(near_, any(), sizeof address_), 0);
    far_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(far_, 0);
  }
  bool is_open() const {
    char said{};
    return recv(far_, &said, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&address_); }

  sockaddr_in address_{};
  int listener_ = -1;
  int near_ = -1;
  int far_ = -1;
};

TEST(Connecting, LeavesConnectionsToOtherServersOfTheSamePortAlone) {
  const SilentServer hanging{After::info};
  OthersConnection other{hanging.port()};
  test::Answers answers;
  nats::Publisher publisher{{.url = hanging.url(), .connect_timeout = 500ms}};
  publisher.connect(1, answers);
  ASSERT_TRUE(test::eventually([&] { return hanging.connections() == 1; }));
  other.open();

  EXPECT_THAT(answers.wait_for(0).detail, HasSubstr("Timeout"));

  EXPECT_TRUE(other.is_open());
}

TEST(Connecting, LeavesItsOwnConnectionsToTheSameServerAlone) {
  const SilentServer server{After::info, 1};
  test::Answers hanging;
  nats::Publisher first{{.url = server.url(), .connect_timeout = 500ms}};
  first.connect(1, hanging);
  ASSERT_TRUE(test::eventually([&] { return server.connections() == 1; }));
  test::Answers sound;
  nats::Publisher second{{.url = server.url(), .connect_timeout = 500ms}};
  second.connect(1, sound);
  ASSERT_EQ(sound.wait_for(0).kind, Kind::connected);
  sound.clear();

  EXPECT_THAT(hanging.wait_for(0).detail, HasSubstr("Timeout"));

  // What was shut down would be closed before the server's answer to another one comes.
  test::Answers later;
  nats::Publisher third{{.url = server.url()}};
  third.connect(1, later);
  ASSERT_EQ(later.wait_for(0).kind, Kind::connected);
  EXPECT_FALSE(sound.find(0).has_value()) << "the connection is closed";
}

// --- URLs

std::string refusal(const std::string& url) {
  return message_of<UsageError>([&] { nats::check(nats::PublisherOptions{.url = url}); });
}

TEST(BrokerUrl, IsRefusedWhereNoServerCanBe) {
  EXPECT_THAT(refusal("http://127.0.0.1:4222"), HasSubstr("its scheme isn't nats or tls"));
  EXPECT_THAT(refusal("ws://127.0.0.1:4222"), HasSubstr("its scheme isn't nats or tls"));
  EXPECT_THAT(refusal("nats//127.0.0.1:4222"), HasSubstr("names no host"));
  EXPECT_THAT(refusal("nats://"), HasSubstr("names no host"));
  EXPECT_THAT(refusal("nats://a b:4222"), HasSubstr("names no host"));
  EXPECT_THAT(refusal("nats://[::1:4222"), HasSubstr("a bracket isn't closed"));
  EXPECT_THAT(refusal("nats://127.0.0.1:0"), HasSubstr("a number from 1 to 65535"));
  EXPECT_THAT(refusal("nats://127.0.0.1:42222222"), HasSubstr("a number from 1 to 65535"));
  EXPECT_THAT(refusal("nats://127.0.0.1:port"), HasSubstr("a number from 1 to 65535"));
  EXPECT_THAT(refusal("nats://127.0.0.1:4222,http://b"), HasSubstr("'http://b'"));
}

TEST(BrokerUrl, IsRefusedWithoutAPasswordThatItMayHold) {
  for (const char* const url : {"nats://u:hunter2%40host",
                                "nats://u:hunter2%40host:4222",
                                "nats://u%3Ahunter2%40host:4222",
                                "nats://hunter2%40host",
                                "u:hunter2%40host",
                                "nats:u:hunter2",
                                "nats:/u:hunter2/host",
                                "nats//u:hunter2",
                                "u:hunter2://host",
                                "nats://u:hunter2",
                                "nats://u:hunter2:4222",
                                "nats://u:hunter2/host:4222",
                                "nats://u:hunter2?host",
                                "nats://u:hunter2\xef\xbc\xa0host",
                                "nats://hunter2\xef\xbc\xa0host",
                                "nats://[u:hunter2%40host]:4222",
                                "nats://u:hunter2@host",
                                "http://u:hunter2%40host",
                                "nats://one:4222,u:hunter2%40host",
                                "nats://u: hunter2%40host"}) {
    const std::string said = refusal(url);
    EXPECT_THAT(said, HasSubstr("NATS server")) << url;
    EXPECT_THAT(said, Not(HasSubstr("hunter2")));
  }
  EXPECT_THAT(refusal("nats://u:123456%40host"), Not(HasSubstr("123456")));
  EXPECT_THAT(refusal("nats://u:123456"), Not(HasSubstr("123456")));
}

TEST(BrokerUrl, MayOmitDefaults) {
  for (const char* const url :
       {"nats://localhost", "localhost:4222", "nats://[::1]:4222", "nats://127.0.0.1:4222/",
        "tls://broker.example", "nats://my_broker-1:4222", "nats://[fe80::1%eth0]:4222",
        "nats://one:4222, nats://two:4222"}) {
    EXPECT_NO_THROW(nats::check(nats::PublisherOptions{.url = url})) << url;
  }
}

TEST(BrokerUrl, OfAnUnknownHostNamesIt) {
  test::Answers answers;
  nats::Publisher publisher{{.url = "nats://nowhere.invalid:4222"}};
  publisher.connect(1, answers);

  const Answer answer = answers.wait_for(0);
  EXPECT_EQ(answer.kind, Kind::disconnected);
  EXPECT_THAT(answer.detail, HasSubstr("the host 'nowhere.invalid' can't be found"));
}

}  // namespace
}  // namespace stela::silent_broker_test
