// What is shipped beside the program: the unit, the alert rules, the Grafana dashboard.
#include "event_text.hpp"
#include "support/prometheus_text.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"
#include "worker/health.hpp"
#include "worker/reported_metrics.hpp"

#include <stela/tool/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace stela::test::shipped_files_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string text_of(const std::string& file) {
  std::ifstream stream{STELA_SOURCE "/tool/" + file};
  std::string text{std::istreambuf_iterator<char>{stream}, {}};
  EXPECT_NE(text, "") << file;
  return text;
}

/// What a worker, a runner or a consumer serves; of a histogram, its buckets.
std::set<std::string> served_metrics() {
  OutboxStatus status;
  status.partitions.push_back({.id = PartitionId{0}});
  const tool::Figures done;
  const ProjectorStatus projector{.name = "p", .state = BuildState::living};
  const ProcessStatus process{.name = "p"};
  auto types = metric_types_in(tool::metrics_text({.done = done, .status = status}) +
                               tool::metrics_text({&projector, 1}, {&process, 1}) +
                               tool::findings_text({}) + tool::PrometheusMetrics{}.text());
  for (const tool::ReportedMetric& one : tool::reported_metrics) types.emplace(one.name, one.type);
  std::set<std::string> names;
  for (const auto& [name, type] : types) {
    names.insert(type == "histogram" ? name + "_bucket" : name);
  }
  return names;
}

void expect_to_query_only_what_is_served(const std::string& file) {
  const std::string text = text_of(file);
  const std::set<std::string> served = served_metrics();
  const std::regex name{"\\bstela_[a-z_]+"};
  std::set<std::string> queried;
  for (std::sregex_iterator at{text.begin(), text.end(), name}, end; at != end; ++at) {
    queried.insert(at->str());
  }
  EXPECT_GT(queried.size(), 5U);
  for (const std::string& metric : queried) EXPECT_THAT(served, Contains(metric)) << file;
}

TEST(ShippedFiles, TheGrafanaDashboardQueriesOnlyMetricsThatAreServed) {
  expect_to_query_only_what_is_served("grafana/stela-dashboard.json");
}

TEST(ShippedFiles, TheGrafanaDashboardShowsTimers) {
  const std::string text = text_of("grafana/stela-dashboard.json");
  for (const char* metric :
       {"stela_timers_due", "stela_timers_overdue", "stela_timers_oldest_due_seconds",
        "stela_timers_parked", "stela_timers_fired_total", "stela_timer_failures_total"}) {
    EXPECT_THAT(text, HasSubstr(std::string{"("} + metric + "{"));
  }
}

TEST(ShippedFiles, TheAlertRulesQueryOnlyMetricsThatAreServed) {
  expect_to_query_only_what_is_served("prometheus/stela-alerts.yml");
}

TEST(ShippedFiles, TheGrafanaDashboardIsJson) {
  EXPECT_NO_THROW(tool::minified(text_of("grafana/stela-dashboard.json")));
}

TEST(ShippedFiles, TheUnitIsNotRootAndConfined) {
  const std::string unit = text_of("systemd/stela-outbox@.service.in");
  for (const char* line :
       {"User=stela", "Group=stela", "CapabilityBoundingSet=", "NoNewPrivileges=yes",
        "ProtectSystem=strict", "ReadWritePaths=-/var/lib/stela", "ProtectHome=yes",
        "PrivateTmp=yes", "PrivateDevices=yes", "MemoryDenyWriteExecute=yes",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "SystemCallFilter=@system-service"}) {
    EXPECT_THAT(lines_of(unit), Contains(line));
  }
  EXPECT_THAT(text_of("systemd/stela.conf"), HasSubstr("u stela "));
}

TEST(ShippedFiles, SystemdTakesTheUnitAndFindsItConfined) {
  const TempDir dir;
  std::string unit = text_of("systemd/stela-outbox@.service.in");
  const std::string start = "@CMAKE_INSTALL_FULL_BINDIR@/stela";
  unit.replace(unit.find(start), start.size(), program());
  const std::string file = dir.file("stela-outbox@.service");
  std::ofstream{file} << unit;
  const RunOptions analyze{.program = "/usr/bin/systemd-analyze"};
  const Ran verified = run({"verify", "--man=no", file}, analyze);
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_EQ(verified.err, "");
  // Of 0 to 100; a unit without any of this has 96.
  const Ran judged = run({"security", "--offline=true", "--threshold=20", file}, analyze);
  EXPECT_EQ(judged.code, 0) << judged.out;
}

}  // namespace
}  // namespace stela::test::shipped_files_test
