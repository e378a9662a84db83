#include "worker/health.hpp"
#include "worker/http_server.hpp"

#include "cli/exit.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// All that a server on loopback answers.
std::string ask(std::uint16_t port, const std::string& request) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(file, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    std::array<char, 4096> buffer;
    for (ssize_t size; (size = recv(file, buffer.data(), buffer.size(), 0)) > 0;) {
      answer.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  close(file);
  return answer;
}

std::string get(std::uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

std::uint16_t port_in(const std::string& text) {
  const std::size_t at = text.find("127.0.0.1:");
  return at == std::string::npos ? 0 : static_cast<std::uint16_t>(std::stoi(text.substr(at + 10)));
}

TEST(WorkerHealth, NamesEachReasonNotToBeReady) {
  Snapshot done;
  done.broker = "connected";
  OutboxStatus status;
  EXPECT_THAT(why_not_ready({.done = done, .status = status}), IsEmpty());
  EXPECT_THAT(why_not_ready({.done = done, .status = status, .is_draining = true}),
              ElementsAre("draining"));
  EXPECT_THAT(why_not_ready({.done = done, .status = status, .store_problem = "newer"}),
              ElementsAre("database: newer"));
  status.lag = 61s;
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre("lag: 1 min 1 s, more than 1 min"));
  status.lag = {};
  status.partitions.push_back({.id = PartitionId{0}, .stopped = "broker_lost"});
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre("partition all is stopped: broker_lost"));
  status.partitions.clear();
  done.broker = "down: refused";
  EXPECT_THAT(why_not_ready({.done = done, .status = status}),
              ElementsAre("broker: down: refused"));
}

TEST(WorkerHealth, TheReferenceNamesTheMetricsThatAreServed) {
  OutboxStatus status;
  status.partitions.push_back({.id = PartitionId{0}});
  const Snapshot done;
  std::ifstream file{STELA_SOURCE "/docs/reference/metrics.md"};
  const std::string all{std::istreambuf_iterator<char>{file}, {}};
  const std::string page = all.substr(all.find("## The worker"));
  const auto names_in = [](const std::string& text, const char* pattern) {
    std::set<std::string> names;
    const std::regex expression{pattern};
    for (std::sregex_iterator at{text.begin(), text.end(), expression}, end; at != end; ++at) {
      names.insert((*at)[1].str() + " " + (*at)[2].str());
    }
    return names;
  };
  EXPECT_EQ(names_in(page, "\\| `(stela_[a-z_]+)[^`]*` \\| ([a-z]+) \\|"),
            names_in(metrics_text({.done = done, .status = status}),
                     "# TYPE (stela_[a-z_]+) ([a-z]+)\n"));
}

TEST(WorkerHealth, MetricsAreInPrometheusForm) {
  Snapshot done;
  done.broker = "connected";
  done.tick_durations.add(3ms);
  done.tick_durations.add(2min);
  OutboxStatus status;
  status.lag = 1500ms;
  const std::string text = metrics_text({.done = done, .status = status});
  EXPECT_EQ(text.find("stela_outbox_lag_seconds"), text.find("# HELP ") + 7);
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_lag_seconds 1.5\n"));
  EXPECT_THAT(text, HasSubstr("stela_worker_tick_duration_seconds_bucket{le=\"0.0025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("stela_worker_tick_duration_seconds_bucket{le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stela_worker_tick_duration_seconds_bucket{le=\"60\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stela_worker_tick_duration_seconds_bucket{le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("stela_worker_tick_duration_seconds_count 2\n"));
  const std::regex line{"(# (HELP|TYPE) .*|[a-z_]+(\\{[a-z]+=\"[^\"]*\"\\})? [0-9.e+-]+)"};
  for (const std::string& one : test::lines_of(text))
    EXPECT_TRUE(std::regex_match(one, line)) << one;
}

TEST(WorkerHttp, AnswersAndRefuses) {
  const HttpServer server{{}, [](std::string_view path) -> HttpResponse {
                            if (path == "/fail") throw std::runtime_error{"it broke"};
                            return {.body = "you asked for " + std::string{path}};
                          }};
  const std::uint16_t port = port_in(server.url());
  EXPECT_THAT(get(port, "/a?b=c"), HasSubstr("you asked for /a"));
  EXPECT_THAT(get(port, "/fail"), HasSubstr("500 Internal Server Error"));
  EXPECT_THAT(ask(port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
              HasSubstr("405"));
  EXPECT_THAT(ask(port, "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"),
              testing::Not(HasSubstr("you asked")));
  EXPECT_EQ(ask(port, std::string(20'000, 'x') + "\r\n\r\n"), "");
  EXPECT_THROW((HttpServer{{.port = port}, nullptr}), Exit);
  EXPECT_EQ(parse_address("9464").host, "127.0.0.1");
  EXPECT_EQ(parse_address("[::1]:80").host, "::1");
  EXPECT_THROW(parse_address("host:99999"), Misuse);
}

class ToolReadiness : public testing::Test {
 protected:
  void SetUp() override {
    test::run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    test::run_well({"outbox", "enable", "--db", db_});
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
  test::run_well({"events", "append", "--db", db_, "--stream", "order-1", "--type", "order.placed",
                  "--publish", "--data", "{}"});
  EXPECT_TRUE(becomes(worker, "lag: ")) << ready(worker);
}

TEST_F(ToolReadiness, IsLostByAStoppedPartitionAndANewerSchema) {
  const test::NatsServer nats;
  test::Running worker{work(nats.url())};
  ASSERT_TRUE(becomes(worker, "200 OK")) << worker.err();
  test::RawSqlite raw{db_};
  raw.run("UPDATE outbox_partitions SET stopped = 'broker_lost'");
  EXPECT_TRUE(becomes(worker, "is stopped: broker_lost")) << ready(worker);
  raw.run(
      "INSERT INTO stela_migrations SELECT module, number + 100, name, checksum, applied_at "
      "FROM stela_migrations WHERE module = 'eventstore'");
  EXPECT_TRUE(becomes(worker, "database: ")) << ready(worker);
}

TEST_F(ToolReadiness, IsLostWhileDraining) {
  const test::NatsServer nats;
  test::Running worker{work(nats.url(), {"--interval-ms", "2000"})};
  ASSERT_TRUE(becomes(worker, "200 OK")) << worker.err();
  const std::uint16_t port = port_in(worker.err());
  worker.signal(SIGTERM);
  // It ends soon, and until then says so, or doesn't answer any more.
  EXPECT_TRUE(eventually([&] {
    const std::string seen = get(port, "/readyz");
    return seen.empty() || seen.find("draining") != std::string::npos;
  }));
  EXPECT_EQ(worker.wait(), 0);
}

}  // namespace
}  // namespace stela::tool
