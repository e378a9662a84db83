#include "worker/health.hpp"
#include "http/server.hpp"

#include "cli/exit.hpp"
#include "support/loopback.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/http.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <future>

namespace stela::tool::health_test {
namespace {

using namespace std::chrono_literals;
using test::ask;
using test::eventually;
using test::get;
using test::port_in;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(WorkerHealth, NamesEachReasonNotToBeReady) {
  Figures done;
  done.broker = BrokerStatus{BrokerState::connected};
  OutboxStatus status;
  EXPECT_THAT(why_not_ready({.done = done, .status = status}), IsEmpty());
  EXPECT_THAT(why_not_ready({.done = done, .status = status, .is_draining = true}),
              ElementsAre("draining"));
  EXPECT_THAT(why_not_ready({.done = done, .status = status, .store_problem = "newer"}),
              ElementsAre("database: newer"));
  status.lag = 61s;
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre("the oldest message has been pending for 1 min 1 s"));
  status.lag = {};
  status.partitions.push_back({.id = PartitionId{0}, .stopped = StopReason::broker_lost});
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre("partition all is stopped (broker_lost)"));
  status.partitions.clear();
  done.heartbeat_age = 21s;
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre(HasSubstr("heartbeat: none for 21.0 s, more than 20.0 s")));
  done.heartbeat_age = 1s;
  done.broker = BrokerStatus{BrokerState::down, "refused"};
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre("broker: down: refused"));
}

HttpPages test_pages(std::function<HttpResponse(const HttpRequest&)> in_time) {
  return {.at_once = [](const HttpRequest& request) -> std::optional<HttpResponse> {
            if (request.path == "/crash") throw std::runtime_error{"it crashed"};
            if (request.path == "/healthz") return HttpResponse{.body = "ok\n"};
            return std::nullopt;
          },
          .in_time = std::move(in_time)};
}

TEST(WorkerHttp, AnswersAndRefuses) {
  const HttpServer server{{}, test_pages([](const HttpRequest& request) -> HttpResponse {
                            if (request.path == "/fail") throw std::runtime_error{"it broke"};
                            return {.body = "you asked for " + request.path};
                          })};
  const std::uint16_t port = port_in(server.url());
  EXPECT_THAT(get(port, "/a?b=c"), HasSubstr("you asked for /a"));
  EXPECT_THAT(get(port, "/fail"), HasSubstr("500 Internal Server Error"));
  EXPECT_THAT(get(port, "/crash"), HasSubstr("500 Internal Server Error"));
  EXPECT_THAT(ask(port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
              HasSubstr("405"));
  EXPECT_THAT(ask(port, "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(HasSubstr("200 OK"), Not(HasSubstr("you asked"))));
  EXPECT_THAT(ask(port, std::string(20'000, 'x') + "\r\n\r\n"), HasSubstr("431"));
  EXPECT_THROW((HttpServer{{.port = port}, {}}), Exit);
  EXPECT_EQ(parse_address("9464", "the port").host, "127.0.0.1");
  EXPECT_EQ(parse_address("[::1]:80", "the port").host, "::1");
  EXPECT_THROW(parse_address("host:99999", "the port"), Misuse);
}

TEST(WorkerHttp, IsWellWhileAPageTakesItsTime) {
  std::promise<void> asked;
  std::promise<void> answers;
  const HttpServer server{{}, test_pages([&](const HttpRequest&) -> HttpResponse {
                            asked.set_value();
                            answers.get_future().wait();
                            return {.body = "at last"};
                          })};
  const std::uint16_t port = port_in(server.url());
  std::future<std::string> page =
      std::async(std::launch::async, [&] { return get(port, "/metrics"); });
  asked.get_future().wait();
  EXPECT_THAT(get(port, "/healthz"), HasSubstr("200 OK"));
  answers.set_value();
  EXPECT_THAT(page.get(), HasSubstr("at last"));
}

TEST(WorkerHttp, RefusesRequestsWhenTooManyWait) {
  std::promise<void> answers;
  const std::shared_future<void> answered = answers.get_future().share();
  const HttpServer server{{}, test_pages([&](const HttpRequest&) -> HttpResponse {
                            answered.wait();
                            return {.body = "at last"};
                          })};
  const std::uint16_t port = port_in(server.url());
  std::vector<std::future<std::string>> pages;
  for (int i = 0; i < 17; ++i) {
    pages.push_back(std::async(std::launch::async, [&] { return get(port, "/metrics"); }));
  }
  // One of them is refused while all others wait.
  EXPECT_TRUE(eventually([&] {
    return std::any_of(pages.begin(), pages.end(), [](auto& page) {
      return page.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
    });
  }));
  EXPECT_THAT(get(port, "/healthz"), HasSubstr("200 OK"));
  answers.set_value();
  std::size_t refused = 0;
  for (auto& page : pages) refused += page.get().find("503") != std::string::npos ? 1 : 0;
  EXPECT_EQ(refused, 1U);
}

/// Connections of clients that say nothing.
class IdleClients {
 public:
  IdleClients(std::uint16_t port, int count) {
    const sockaddr_in address = test::loopback(port);
    for (int i = 0; i < count; ++i) {
      files_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(connect(files_.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                0);
    }
  }
  ~IdleClients() {
    for (const int file : files_) close(file);
  }
  IdleClients(const IdleClients&) = delete;
  IdleClients& operator=(const IdleClients&) = delete;

  bool is_cut_off(std::size_t client) const {
    pollfd end{.fd = files_.at(client), .events = POLLIN, .revents = 0};
    return poll(&end, 1, 0) == 1;
  }

 private:
  std::vector<int> files_;
};

TEST(WorkerHttp, CutsTheOldestIdleClientOffWhenAllPlacesAreTaken) {
  const HttpServer server{
      {}, test_pages([](const HttpRequest&) -> HttpResponse { return {.body = "figures"}; })};
  const std::uint16_t port = port_in(server.url());
  const IdleClients idle{port, 64};
  EXPECT_THAT(get(port, "/healthz"), HasSubstr("200 OK"));
  EXPECT_TRUE(idle.is_cut_off(0));
  EXPECT_FALSE(idle.is_cut_off(63));
  EXPECT_THAT(get(port, "/metrics"), HasSubstr("figures"));
}

/// As many file descriptors as are open, and not one more, while it lives.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const rlimit full{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &full);
  }
  ~NoDescriptorLeft() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

TEST(WorkerHttp, RestsWhileNoFileDescriptorIsLeft) {
  const HttpServer server{{}, test_pages(nullptr)};
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = test::loopback(port_in(server.url()));
  const std::string_view request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  pollfd answer{.fd = client, .events = POLLIN, .revents = 0};
  {
    const NoDescriptorLeft full;
    ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_GT(send(client, request.data(), request.size(), MSG_NOSIGNAL), 0);
    const std::clock_t before = std::clock();
    EXPECT_EQ(poll(&answer, 1, 500), 0) << "nobody can accept it";
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10) << "it tries without a pause";
  }
  EXPECT_EQ(poll(&answer, 1, 10'000), 1);
  std::array<char, 512> text{};
  EXPECT_GT(recv(client, text.data(), text.size() - 1, 0), 0);
  EXPECT_THAT(text.data(), HasSubstr("200 OK"));
  close(client);
}

class ToolReadiness : public ::testing::Test {
 protected:
  void SetUp() override {
    test::run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    test::run_well({"outbox", "enable", "--db", db_});
  }
  void append() {
    test::run_well({"events", "append", "--db", db_, "--stream", "order-1", "--type",
                    "order.placed", "--publish", "--data", "{}"});
  }
  std::string ready(test::Running& worker) {
    const std::uint16_t port = port_in(worker.err());
    return port == 0 ? "" : get(port, "/readyz");
  }
  bool becomes(test::Running& worker, const std::string& wanted) {
    return eventually([&] { return ready(worker).find(wanted) != std::string::npos; });
  }
  std::vector<std::string> work(const std::string& url, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"outbox",          "work",      "--db", db_, "--nats", url,
                                   "--ensure-stream", "--metrics", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  test::TempDir dir_ = test::TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

TEST_F(ToolReadiness, FollowsTheBrokerAndTheLag) {
  std::optional<test::NatsServer> nats{std::in_place};
  test::Running worker{work(nats->url(), {"--set", "worker.max_lag=0s"})};
  EXPECT_TRUE(becomes(worker, "200 OK")) << worker.err();
  EXPECT_THAT(get(port_in(worker.err()), "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(get(port_in(worker.err()), "/metrics"), HasSubstr("stela_worker_broker_up 1\n"));
  EXPECT_THAT(get(port_in(worker.err()), "/"), HasSubstr("404"));
  nats.reset();
  EXPECT_TRUE(becomes(worker, "broker: down")) << ready(worker);
  append();
  EXPECT_TRUE(becomes(worker, "the oldest message has been pending for ")) << ready(worker);
}

TEST_F(ToolReadiness, IsLostByAStoppedPartitionAndANewerSchema) {
  const test::NatsServer nats;
  test::Running worker{work(nats.url())};
  ASSERT_TRUE(becomes(worker, "200 OK")) << worker.err();
  test::RawSqlite raw{db_};
  raw.run("UPDATE outbox_partitions SET stopped = 'broker_lost', broker_sequence = 9");
  EXPECT_TRUE(becomes(worker, "is stopped (broker_lost)")) << ready(worker);
  EXPECT_THAT(
      get(port_in(worker.err()), "/metrics"),
      AllOf(HasSubstr(R"(stela_findings{code="partition_broker_lost",severity="critical"} 1)"),
            HasSubstr(R"(stela_findings{code="partition_poison",severity="critical"} 0)")));
  raw.run(
      "INSERT INTO stela_migrations SELECT module, number + 100, name, checksum, applied_at "
      "FROM stela_migrations WHERE module = 'eventstore'");
  EXPECT_TRUE(becomes(worker, "database: ")) << ready(worker);
}

TEST_F(ToolReadiness, IsLostWhileDraining) {
  const test::NatsServer nats;
  test::Running worker{work(nats.url(), {"--set", "outbox.publish_timeout=2s"})};
  ASSERT_TRUE(becomes(worker, "200 OK")) << worker.err();
  // In flight, to a broker that doesn't answer: the worker waits for it before it leaves.
  nats.pause();
  append();
  ASSERT_TRUE(eventually([&] {
    return test::member(test::run_well({"outbox", "status", "--db", db_, "--json"}), "in_flight") ==
           "1";
  }));
  worker.signal(SIGTERM);
  EXPECT_TRUE(becomes(worker, "draining")) << ready(worker);
  EXPECT_THAT(ready(worker), HasSubstr("503"));
  nats.resume();
  EXPECT_EQ(worker.wait(), 0);
}

}  // namespace
}  // namespace stela::tool::health_test
