// That the proxy does to connections what chaos asks it for.
#include "support/loopback.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/tcp_proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace stela::test::proxy_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Direction = TcpProxy::Direction;
using Steady = std::chrono::steady_clock;

/// Speaks NATS by hand.
class Client {
 public:
  explicit Client(int port) : socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    const sockaddr_in address = loopback(port);
    connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    say("CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void say(std::string_view text) { send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// All that was heard until then; less if the connection ends before.
  std::string hear_until(std::string_view text) {
    eventually([&] { return !listen() || heard_.find(text) != std::string::npos; });
    return heard_;
  }
  std::string hear_to_the_end() { return hear_until("there is no such text"); }
  /// A round trip to the server: everything before it has been dealt with.
  bool ping() {
    say("PING\r\n");
    return hears_pongs(++pings_);
  }
  bool hears_pongs(int wanted) {
    return eventually([&] { return !listen() || pongs() == wanted; }) && pongs() == wanted;
  }
  /// How many pings were answered, as far as was heard.
  int pongs() const {
    int count = 0;
    for (std::size_t at = 0; (at = heard_.find("PONG\r\n", at)) != std::string::npos; ++at) ++count;
    return count;
  }

 private:
  /// False once the connection has ended.
  bool listen() {
    std::array<char, 4096> buffer;
    const ssize_t size = recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) heard_.append(buffer.data(), static_cast<std::size_t>(size));
    return size > 0 || (size < 0 && errno == EAGAIN);
  }

  int socket_;
  int pings_ = 0;
  std::string heard_;
};

class Proxy : public ::testing::Test {
 protected:
  /// Whoever has subscribed to it is sent a message.
  void publish_news() {
    Client other{server.port()};
    other.say("PUB news 4\r\nnews\r\n");
    EXPECT_TRUE(other.ping());
  }

  NatsServer server;
  TcpProxy proxy{server.port()};
};

TEST_F(Proxy, OfASilentServerPassesItsGreetingAndNothingMore) {
  proxy.fall_silent(true);
  Client client{proxy.port()};
  client.hear_until("\r\n");
  client.say("PING\r\n");
  publish_news();
  proxy.heal();

  const std::string heard = client.hear_to_the_end();
  EXPECT_THAT(heard, StartsWith("INFO "));
  EXPECT_EQ(heard.find("\r\n"), heard.size() - 2);
  EXPECT_TRUE(Client{proxy.port()}.ping());
}

TEST_F(Proxy, LosesRequestsAndPassesAnswers) {
  Client client{proxy.port()};
  client.say("SUB news 1\r\n");
  ASSERT_TRUE(client.ping());
  proxy.lose(Direction::requests);
  client.say("PING\r\n");
  publish_news();

  EXPECT_THAT(client.hear_until("MSG news"), HasSubstr("MSG news"));
  EXPECT_EQ(client.pongs(), 1);
  proxy.heal();
  client.hear_to_the_end();
  EXPECT_EQ(client.pongs(), 1);
}

TEST_F(Proxy, LosesAnswersAndPassesRequests) {
  Client subscriber{server.port()};
  subscriber.say("SUB news 1\r\n");
  ASSERT_TRUE(subscriber.ping());
  Client client{proxy.port()};
  ASSERT_TRUE(client.ping());
  proxy.lose(Direction::answers);
  client.say("PUB news 4\r\nnews\r\nPING\r\n");

  EXPECT_THAT(subscriber.hear_until("MSG news"), HasSubstr("MSG news"));
  proxy.heal();
  client.hear_to_the_end();
  EXPECT_EQ(client.pongs(), 1);
}

TEST_F(Proxy, HoldsRequestsUntilTheyAreReleased) {
  Client client{proxy.port()};
  client.say("SUB news 1\r\n");
  ASSERT_TRUE(client.ping());
  proxy.hold(Direction::requests);
  client.say("PING\r\n");
  publish_news();
  EXPECT_THAT(client.hear_until("MSG news"), HasSubstr("MSG news"));
  EXPECT_EQ(client.pongs(), 1);

  proxy.release();
  EXPECT_TRUE(client.hears_pongs(2));
}

TEST_F(Proxy, IsAsSlowAsItIsToldInOneDirection) {
  Client client{proxy.port()};
  ASSERT_TRUE(client.ping());
  proxy.limit(Direction::requests, 20'000);
  proxy.delay(Direction::requests, 50ms);
  const auto begun = Steady::now();

  client.say("PUB news 4000\r\n" + std::string(4'000, 'x') + "\r\n");
  EXPECT_TRUE(client.ping());

  EXPECT_GE(Steady::now() - begun, 250ms);
}

TEST_F(Proxy, PassesHeldBytesOnceItIsHealed) {
  Client client{proxy.port()};
  ASSERT_TRUE(client.ping());
  proxy.limit(1);
  client.say("PING\r\nPING\r\n");
  // Those that it refuses tell that it has had a look at the others.
  proxy.refuse(true);
  for (int i = 0; i < 2; ++i) Client{proxy.port()}.hear_to_the_end();
  proxy.heal();

  EXPECT_TRUE(client.hears_pongs(3));
}

TEST(ProxyOfACluster, GoesToTheNextServerThatTakesAConnection) {
  NatsServer one;
  NatsServer other;
  TcpProxy proxy{{one.port(), other.port()}};
  const auto server_of_next = [&] {
    const std::string info = Client{proxy.port()}.hear_until("\r\n");
    return info.find("\"port\":" + std::to_string(one.port())) != std::string::npos ? 1 : 2;
  };

  EXPECT_EQ(server_of_next(), 1);
  EXPECT_EQ(server_of_next(), 2);
  EXPECT_EQ(server_of_next(), 1);
  one.kill();
  EXPECT_EQ(server_of_next(), 2);
  EXPECT_EQ(server_of_next(), 2);
}

}  // namespace
}  // namespace stela::test::proxy_test
