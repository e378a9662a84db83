// What /metrics serves: as Prometheus wants it, and as the reference names it.
#include "commands/tenant_work.hpp"
#include "worker/health.hpp"
#include "worker/reported_metrics.hpp"

#include "projections/models.hpp"
#include "support/nats_server.hpp"
#include "support/orders.hpp"
#include "support/process.hpp"
#include "support/prometheus_text.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/http.hpp"
#include "tool/program.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/tool.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace stela::tool::metrics_test {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::metric_types_in;
using test::problems_in_metrics;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(PrometheusText, IsCheckedStrictly) {
  const std::string good =
      "# HELP a_seconds What.\n# TYPE a_seconds histogram\n"
      "a_seconds_bucket{le=\"1\"} 1\na_seconds_bucket{le=\"+Inf\"} 2\n"
      "a_seconds_sum 3.5\na_seconds_count 2\n"
      "# HELP b_total What.\n# TYPE b_total counter\nb_total{x=\"\\\"\\\\\"} 1e+06\n";
  EXPECT_THAT(problems_in_metrics(good), IsEmpty());
  const auto is_bad = [&](const char* wrong, const char* right) {
    std::string text = good;
    const std::size_t at = text.find(right);
    ASSERT_NE(at, std::string::npos) << right;
    text.replace(at, std::string{right}.size(), wrong);
    EXPECT_THAT(problems_in_metrics(text), Not(IsEmpty())) << text;
  };
  is_bad("a_seconds_count 3", "a_seconds_count 2");
  is_bad("a_seconds_bucket{le=\"+Inf\"} 0", "a_seconds_bucket{le=\"+Inf\"} 2");
  is_bad("a_seconds_bucket{le=\"2\"} 2", "a_seconds_bucket{le=\"+Inf\"} 2");
  is_bad("a_seconds_bucket{le=\"1\"} 2", "a_seconds_bucket{le=\"+Inf\"} 2");
  is_bad("", "a_seconds_sum 3.5\n");
  is_bad("", "# HELP b_total What.\n");
  is_bad("", "# TYPE b_total counter\n");
  is_bad("HELP b_total \n", "HELP b_total What.\n");
  is_bad("b_total gauge", "b_total counter");
  is_bad("b_total{x=\"\\x\"} 1", "b_total{x=\"\\\"\\\\\"} 1e+06");
  is_bad("b_total{__x=\"\"} 1", "b_total{x=\"\\\"\\\\\"} 1e+06");
  is_bad("b_total -1", "b_total{x=\"\\\"\\\\\"} 1e+06");
  is_bad("b_total one", "b_total{x=\"\\\"\\\\\"} 1e+06");
  is_bad("b_total 1\nb_total 2", "b_total{x=\"\\\"\\\\\"} 1e+06");
  is_bad("b_total 1\n\n", "b_total{x=\"\\\"\\\\\"} 1e+06\n");
  EXPECT_THAT(problems_in_metrics("# HELP a_ms What.\n# TYPE a_ms gauge\na_ms 1\n"),
              Not(IsEmpty()));
}

TEST(ToolMetrics, TheReferenceNamesAllMetrics) {
  std::ifstream file{STELA_SOURCE "/docs/reference/metrics.md"};
  const std::string page{std::istreambuf_iterator<char>{file}, {}};
  std::map<std::string, std::string> documented;
  const std::regex row{"\\| `(stela_[a-z_]+)[^`]*` \\| ([a-z]+) \\|"};
  for (std::sregex_iterator at{page.begin(), page.end(), row}, end; at != end; ++at) {
    documented[(*at)[1]] = (*at)[2];
  }
  OutboxStatus status;
  status.partitions.push_back({.id = PartitionId{0}});
  const Figures done;
  const ProjectorStatus projector{.name = "p", .state = BuildState::living};
  const ProcessStatus process{.name = "p"};
  auto store = sqlite::open_in_memory();
  PrometheusMetrics metrics;
  const Subscription watching = metrics.watch(store);
  auto served = metric_types_in(metrics_text({.done = done, .status = status}) +
                                metrics_text({&projector, 1}, {&process, 1}) + findings_text({}) +
                                metrics.text() + metrics_text(TenantsStanding{}, {{"other", 0}}));
  for (const ReportedMetric& one : reported_metrics) served.emplace(one.name, one.type);
  EXPECT_EQ(documented, served);
}

TEST(ToolMetrics, LagComesFirst) {
  Figures done;
  done.broker = BrokerStatus{BrokerState::connected};
  OutboxStatus status;
  status.lag = 1500ms;
  const std::string text = metrics_text({.done = done, .status = status});
  EXPECT_EQ(text.find("stela_outbox_lag_seconds"), text.find("# HELP ") + 7);
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_lag_seconds 1.5\n"));
  EXPECT_THAT(problems_in_metrics(text), IsEmpty());
}

TEST(ToolMetrics, AddUpReportedValues) {
  PrometheusMetrics metrics;
  metrics.count("shop_orders_total", 2, {{"kind", "a \"b\" \n\\"}});
  metrics.count("shop_orders_total", 3, {{"kind", "a \"b\" \n\\"}});
  metrics.count("shop_orders_total", 1, {{"kind", "c"}});
  metrics.gauge("shop_open", 4, {});
  metrics.gauge("shop_open", 2.5, {});
  metrics.observe("shop_wait_seconds", 0.003, {});
  metrics.observe("shop_wait_seconds", 120, {});
  // A name has one meaning; what isn't a number is none.
  metrics.gauge("shop_orders_total", 9, {});
  metrics.gauge("shop_open", std::numeric_limits<double>::quiet_NaN(), {});
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("shop_orders_total{kind=\"a \\\"b\\\" \\\\x0a\\\\\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("shop_orders_total{kind=\"c\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nshop_open 2.5\n"));
  EXPECT_THAT(text, HasSubstr("shop_wait_seconds_bucket{le=\"0.0025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("shop_wait_seconds_bucket{le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("shop_wait_seconds_bucket{le=\"+Inf\"} 2\n"));
  EXPECT_THAT(problems_in_metrics(text), IsEmpty());
}

TEST(ToolMetrics, StoreAndRelayOfAnApplicationReport) {
  const test::TempDir dir = test::TempDir::in_memory();
  PrometheusMetrics metrics;
  auto store = sqlite::open(dir.file("shop.db"), {.checkpoint_pages = 1, .metrics = &metrics});
  Outbox outbox{store, {.fence = Fence::none}};
  Repository<test::Order> orders{store};
  const auto id = Id<test::Order>::from("1");
  auto first = test::Order::place(id, "ann", 100);
  orders.save(first);
  auto second = test::Order::place(id, "bob", 100);
  EXPECT_THROW(orders.save(second), ConcurrencyConflict);
  EventBus bus{store, {}, EventBus::Feed::deliver};
  BusPublisher publisher{bus};
  Relay relay{outbox, publisher};
  EXPECT_EQ(relay.run_once().published, 1);

  const std::string text = metrics.text();
  EXPECT_THAT(problems_in_metrics(text), IsEmpty()) << text;
  EXPECT_THAT(text, HasSubstr("\nstela_store_events_total 1\n"));
  EXPECT_THAT(text,
              HasSubstr("stela_store_failed_writes_total{error=\"concurrency_conflict\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_store_checkpoints_total{result=\"complete\"} "));
  EXPECT_THAT(text, HasSubstr("\nstela_store_commit_seconds_count 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_worker_published_total 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("Reported to the metric sink")));
}

/// A store with an outbox and a projector, which reports to a sink of its own.
struct Shop {
  Shop(PrometheusMetrics& all, const std::string& name)
      : store{sqlite::open_in_memory({.metrics = &all.sink(name)})},
        projections{store},
        watching{all.watch(store, name)} {
    projections.add(test::Counts{});
  }

  Store store;
  Outbox outbox{store};
  Projections projections;
  Subscription watching;
};

TEST(ToolMetrics, StoresOfAnApplicationStandSideBySide) {
  PrometheusMetrics metrics;
  Shop orders{metrics, "orders"};
  Shop stock{metrics, "stock"};
  test::place(orders.store, "1");
  test::place(orders.store, "2");
  test::place(stock.store, "3");
  Runner{stock.projections}.run_once();

  const std::string text = metrics.text();

  EXPECT_THAT(problems_in_metrics(text), IsEmpty()) << text;
  EXPECT_THAT(text, HasSubstr("\nstela_store_events_total{store=\"orders\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_store_events_total{store=\"stock\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_messages{store=\"orders\",state=\"pending\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_messages{store=\"stock\",state=\"pending\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_messages{store=\"stock\",state=\"parked\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_outbox_lag_seconds{store=\"orders\"} "));
  EXPECT_THAT(text,
              HasSubstr("\nstela_projector_lag_events{store=\"stock\",projector=\"counts\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_store_up{store=\"orders\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_store_up{store=\"stock\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_runner_commits_total{store=\"stock\"} "));
}

TEST(ToolMetrics, AStoreThatIsNoLongerWatchedIsNotAsked) {
  PrometheusMetrics metrics;
  {
    auto store = sqlite::open_in_memory();
    const Subscription watching = metrics.watch(store, "orders");
    EXPECT_THROW((void)metrics.watch(store, "orders"), UsageError);
    EXPECT_THAT(metrics.text(), HasSubstr("stela_store_up{store=\"orders\"} 1\n"));
  }
  EXPECT_THAT(metrics.text(), Not(HasSubstr("orders")));
}

TEST(ToolMetrics, AStoreThatDoesNotAnswerLeavesTheOthersServed) {
  const test::TempDir dir;
  PrometheusMetrics metrics;
  auto lost = sqlite::open(dir.file("lost.db"));
  Shop stock{metrics, "stock"};
  const Subscription watching = metrics.watch(lost, "lost");
  std::filesystem::remove(dir.file("lost.db"));

  const std::string text = metrics.text();

  EXPECT_THAT(problems_in_metrics(text), IsEmpty()) << text;
  EXPECT_THAT(text, HasSubstr("\nstela_store_up{store=\"lost\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nstela_store_up{store=\"stock\"} 1\n"));
}

class ToolMetricsPages : public ::testing::Test {
 protected:
  /// Waits until all of this stands on it.
  void wait_for_page(test::Running& running, const std::vector<std::string>& wanted) {
    std::string text;
    EXPECT_TRUE(eventually([&] {
      text = test::body_of(test::get(test::port_in(running.err()), "/metrics"));
      return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& one) {
        return text.find("\n" + one + "\n") != std::string::npos;
      });
    })) << text
        << running.err();
    EXPECT_THAT(problems_in_metrics(text), IsEmpty()) << text;
  }
  void embedded(std::vector<std::string> words) const {
    words.insert(words.end(), {"--db", db_});
    const test::Ran ran = test::run(words, {.program = STELA_EMBEDDING});
    EXPECT_EQ(ran.code, 0) << ran.err;
  }

  test::TempDir dir_ = test::TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

TEST_F(ToolMetricsPages, OfAWorkerHaveStoreOutboxAndProjectors) {
  const test::NatsServer nats;
  embedded({"migrate"});
  embedded({"outbox", "enable"});
  embedded({"events", "append", "--stream", "bill-1", "--type", "order.placed", "--publish",
            "--data", R"({"customer":"Ada","total_cents":7})"});
  embedded({"projections", "run", "--once"});
  test::Running worker{{"outbox", "work", "--db", db_, "--nats", nats.url(), "--ensure-stream",
                        "--metrics", "0", "--workers", "2"}};
  wait_for_page(worker, {"stela_outbox_published_total 1", "stela_worker_published_total 1",
                         "stela_projector_lag_events{projector=\"customers\"} 0",
                         "stela_worker_publish_duration_seconds_count 1"});
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(ToolMetricsPages, OfARunnerSayHowFarItIs) {
  embedded({"migrate"});
  embedded({"events", "append", "--stream", "bill-1", "--type", "order.placed", "--data",
            R"({"customer":"Ada","total_cents":7})"});
  test::Running runner{{"projections", "run", "--db", db_, "--metrics", "0"},
                       {.program = STELA_EMBEDDING}};
  wait_for_page(runner, {"stela_runner_events_total 1", "stela_runner_owned_projectors 1",
                         "stela_projector_lag_events{projector=\"customers\"} 0"});
  const std::uint16_t port = test::port_in(runner.err());
  EXPECT_THAT(test::get(port, "/readyz"), HasSubstr("200 OK"));
  test::RawSqlite{db_}.run("UPDATE projections SET halted = 1");
  EXPECT_TRUE(eventually([&] {
    return test::get(port, "/readyz").find("projector 'customers' v1 is stopped") !=
           std::string::npos;
  })) << test::get(port, "/readyz");
  EXPECT_THAT(test::get(port, "/readyz"), HasSubstr("503"));
  runner.signal(SIGTERM);
  EXPECT_EQ(runner.wait(), 0) << runner.err();
}

}  // namespace
}  // namespace stela::tool::metrics_test
