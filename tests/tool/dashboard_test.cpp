// The dashboard in a real terminal: tmux holds one for us.
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>

namespace stela::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A terminal with a program in it; gone when this goes.
class Terminal {
 public:
  Terminal(const TempDir& dir, int width, int height, const std::string& command)
      : tmux_{"tmux -S " + dir.file("tmux") + " "} {
    shell("-f /dev/null new-session -d -x " + std::to_string(width) + " -y " +
          std::to_string(height) + " '" + command + "; echo ended with $? > " + dir.file("ended") +
          "'");
  }
  ~Terminal() { shell("kill-server 2>/dev/null"); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void resize(int width, int height) {
    shell("resize-window -x " + std::to_string(width) + " -y " + std::to_string(height));
  }
  void type(const std::string& keys) { shell("send-keys " + keys); }
  std::string text() { return shell("capture-pane -p 2>/dev/null"); }
  /// With the escape sequences that the screen is made of now.
  std::string styled() { return shell("capture-pane -e -p 2>/dev/null"); }
  bool shows(const std::string& wanted) {
    return eventually([&] { return text().find(wanted) != std::string::npos; },
                      std::chrono::seconds{20});
  }

 private:
  std::string shell(const std::string& what) const {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe{popen((tmux_ + what).c_str(), "r"), pclose};
    std::string text;
    std::array<char, 4096> buffer;
    while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
      text.append(buffer.data(), size);
    }
    return text;
  }

  std::string tmux_;
};

class ToolDashboard : public testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    run_well({"outbox", "enable", "--db", db_, "--partitions", "4"});
  }
  void append(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      lines += "{\"stream\":\"order-" + std::to_string(i) + "\",\"data\":{}}\n";
    }
    run_well({"events", "append", "--db", db_, "--stdin", "--type", "order.placed", "--publish"},
             {.input = lines});
  }
  std::string work(const std::string& url) const {
    return program() + " outbox work --db " + db_ + " --id w1 --stream SHOP --ensure-stream " +
           "--window 60 --set outbox.retry_backoff=100ms --set outbox.retry_backoff_max=200ms "
           "--nats " +
           url;
  }
  std::string status() const { return run_well({"outbox", "status", "--db", db_, "--json"}); }

  TempDir dir_;
  std::string db_ = dir_.file("shop.db");
};

std::string line_with(const std::string& screen, const std::string& what) {
  for (const std::string& line : lines_of(screen)) {
    if (line.find(what) != std::string::npos) return line;
  }
  return {};
}

TEST_F(ToolDashboard, ShowsTheNumbersOfTheStatusInThreeTwoAndOneColumns) {
  const NatsServer nats;
  append(12);
  Terminal terminal{dir_, 140, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("published       12")) << terminal.text();
  EXPECT_EQ(member(status(), "published"), "12");
  EXPECT_EQ(member(status(), "pending"), "0");
  EXPECT_TRUE(terminal.shows("pending 0")) << terminal.text();
  const std::string three = line_with(terminal.text(), "Summary");
  EXPECT_THAT(three, HasSubstr("Throughput"));
  EXPECT_THAT(three, HasSubstr("Partitions"));
  EXPECT_THAT(terminal.text(), HasSubstr("wanted 4  owned 4"));

  terminal.resize(100, 30);
  EXPECT_TRUE(eventually([&] {
    const std::string two = line_with(terminal.text(), "Summary");
    return two.find("Partitions") != std::string::npos &&
           two.find("Throughput") == std::string::npos;
  })) << terminal.text();

  terminal.resize(70, 50);
  EXPECT_TRUE(eventually([&] {
    const std::string one = line_with(terminal.text(), "Summary");
    return !one.empty() && one.find("Partitions") == std::string::npos;
  })) << terminal.text();

  terminal.resize(60, 8);
  EXPECT_TRUE(terminal.shows("owned 4 of 4")) << terminal.text();
}

TEST_F(ToolDashboard, AnswersToItsKeysAndHandsOver) {
  const NatsServer nats;
  Terminal terminal{dir_, 100, 30, work(nats.url())};
  ASSERT_TRUE(terminal.shows("owned 4")) << terminal.text();
  terminal.type("?");
  EXPECT_TRUE(terminal.shows("Keys"));
  terminal.type("?");
  EXPECT_TRUE(terminal.shows("Summary"));
  terminal.type("p");
  EXPECT_TRUE(terminal.shows("[held]"));
  terminal.type("p");
  terminal.type("/");
  terminal.type("p02");
  EXPECT_TRUE(terminal.shows("/p02_"));
  EXPECT_TRUE(eventually([&] { return terminal.text().find("p03") == std::string::npos; }));
  terminal.type("Escape");
  EXPECT_TRUE(terminal.shows("p03"));
  terminal.type("q");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir_.file("ended")); }));
  EXPECT_THAT(status(), Not(HasSubstr(R"("owner":"w1")")));
}

TEST_F(ToolDashboard, ShowsTheBrokerGoAndComeBack) {
  std::optional<NatsServer> nats{std::in_place};
  const std::string url = nats->url();
  Terminal terminal{dir_, 140, 40, work(url)};
  ASSERT_TRUE(terminal.shows("broker          connected")) << terminal.text();
  nats.reset();
  EXPECT_TRUE(terminal.shows("broker down")) << terminal.text();
  append(2);
  EXPECT_TRUE(terminal.shows("pending 2")) << terminal.text();
}

TEST_F(ToolDashboard, NoEscapeOfDataReachesTheTerminal) {
  const NatsServer nats;
  // Another worker, with a name that no tool of ours gives.
  append(1);
  RawSqlite raw{db_};
  const std::string soon = "(CAST(strftime('%s','now') AS INTEGER) + 14) * 1000000";
  const std::string evil = "'evil' || char(27) || '[41mred' || char(7)";
  raw.run("INSERT INTO outbox_workers (worker, host, pid, started_at, heartbeat_until) VALUES (" +
          evil + ", 'h', 1, 0, " + soon + ")");
  raw.run("UPDATE outbox_partitions SET owner = " + evil + ", lease_until = " + soon +
          ", epoch = 1 WHERE partition = 1");
  Terminal terminal{dir_, 200, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("evil\\x1b[41mred")) << terminal.text();
  EXPECT_THAT(terminal.styled(), Not(HasSubstr("\x1b[41m")));
}

}  // namespace
}  // namespace stela::test
