// The dashboard in a real terminal: tmux holds one for us.
#include "support/nats_server.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "tool/outbox_of_orders.hpp"

#include "cli/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

namespace stela::test::dashboard_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Blanks of cells are one.
std::string squeezed(const std::string& screen) {
  std::string text;
  for (const char c : screen) {
    if (c != ' ' || !text.ends_with(' ')) text += c;
  }
  return text;
}

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
  /// From now on, what the program sends to it goes to this file too.
  void copy_to(const std::string& file) { shell("pipe-pane \"cat > " + file + "\""); }
  bool stops_showing(const std::string& unwanted) {
    return eventually([&] { return text().find(unwanted) == std::string::npos; },
                      std::chrono::seconds{20});
  }
  /// Blanks of cells count as one.
  bool shows(const std::string& wanted) {
    return eventually([&] { return squeezed(text()).find(wanted) != std::string::npos; },
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

std::string line_with(const std::string& screen, const std::string& what) {
  for (const std::string& line : lines_of(screen)) {
    if (line.find(what) != std::string::npos) return line;
  }
  return {};
}

/// "12" in "pending 12  in flight 3" behind "pending".
std::string number_behind(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name + " ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 1;
  return line.substr(begin, line.find_first_not_of("0123456789,", begin) - begin);
}

/// How often a terminal was told to clear its screen.
int clearings_in(const std::string& file) {
  std::ifstream stream{file, std::ios::binary};
  const std::string sent{std::istreambuf_iterator<char>{stream}, {}};
  int count = 0;
  for (const char* clear : {"\x1b[2J", "\x1b[H\x1b[J"}) {
    for (std::size_t at = sent.find(clear); at != std::string::npos;
         at = sent.find(clear, at + 1)) {
      ++count;
    }
  }
  return count;
}

class ToolDashboard : public OutboxOfOrders {
 protected:
  void SetUp() override {
    std::setlocale(LC_CTYPE, "C.UTF-8");
    OutboxOfOrders::SetUp();
  }
  std::string work(const std::string& url) const {
    return program() + " outbox work --db " + db_ + " --id w1 --stream SHOP --ensure-stream " +
           "--window 60 --set outbox.retry_backoff=100ms --set outbox.retry_backoff_max=200ms "
           "--nats " +
           url;
  }
  void park_a_large_message(const std::string& url) const {
    run_well({"events", "append", "--db", db_, "--stream", "order-1", "--type", "order.noted",
              "--publish", "--data", "{\"note\":\"" + std::string(2'000, 'x') + "\"}"});
    run_well({"outbox", "work", "--db", db_, "--until-empty", "--silent", "--stream", "SHOP",
              "--ensure-stream", "--nats", url});
    ASSERT_EQ(member(status(), "parked"), "1");
  }
  /// Every number of the outbox on the screen is that of `outbox status --json`.
  bool agrees_now(Terminal& terminal) {
    const std::string screen = terminal.text();
    const std::string seen = status();
    for (const char* name : {"pending", "in flight", "retrying", "parked"}) {
      std::string key{name};
      std::replace(key.begin(), key.end(), ' ', '_');
      const std::string line = squeezed(line_with(screen, std::string{name} + " "));
      if (number_behind(line, name) != member(seen, key)) return false;
    }
    for (const char* label : {"p00", "p01", "p02", "p03"}) {
      std::istringstream cells{line_with(screen, ' ' + std::string{label} + "  ")};
      for (std::string cell; cells >> cell && cell != label;) {
      }
      std::string pending;
      std::string in_flight;
      cells >> pending >> in_flight;
      const std::string of = seen.substr(seen.find("\"partition\":\"" + std::string{label}));
      if (pending != member(of, "pending") || in_flight != member(of, "in_flight")) return false;
    }
    return true;
  }
  /// Once the terminal has drawn a whole frame: a capture may see half of the next.
  bool agrees(Terminal& terminal) {
    return eventually([&] { return agrees_now(terminal); });
  }
};

TEST_F(ToolDashboard, ShowsTheNumbersOfTheStatusInEveryWidth) {
  const NatsServer nats;
  append(12);
  Terminal terminal{dir_, 140, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("this run 12")) << terminal.text();
  EXPECT_EQ(member(status(), "published"), "12");
  EXPECT_EQ(member(status(), "pending"), "0");
  EXPECT_TRUE(terminal.shows("pending 0")) << terminal.text();
  EXPECT_TRUE(terminal.shows("owned 4 of 4")) << terminal.text();
  EXPECT_TRUE(terminal.shows("desired 4 taken over 4 released 0 lease ")) << terminal.text();
  EXPECT_THAT(line_with(terminal.text(), "PARTITION"), HasSubstr("OWNER"));

  for (const int width : {200, 120, 80, 60}) {
    terminal.resize(width, 40);
    const auto fills_it = [&] {
      const std::string screen = terminal.text();
      return tool::width_of(line_with(screen, "Partitions, by")) ==
                 static_cast<std::size_t>(width) &&
             line_with(screen, " p03 ").find(" ok") != std::string::npos;
    };
    EXPECT_TRUE(eventually(fills_it)) << width << '\n' << terminal.text();
  }
  terminal.resize(60, 8);
  EXPECT_TRUE(terminal.shows("owned 4 of 4")) << terminal.text();
}

TEST_F(ToolDashboard, ScrollsThroughTwoHundredPartitionsAndSortsThem) {
  run_well({"outbox", "partitions", "resize", "200", "--db", db_});
  append(3);
  // Nobody publishes: as the dashboard of who looks shows them.
  Terminal terminal{dir_, 80, 24, program() + " outbox top --db " + db_};
  ASSERT_TRUE(terminal.shows("healthy partitions")) << terminal.text();
  EXPECT_TRUE(terminal.shows("there is no live worker")) << terminal.text();
  terminal.type("a");
  EXPECT_TRUE(terminal.shows("lines 1-")) << terminal.text();
  EXPECT_THAT(terminal.text(), Not(HasSubstr("p199")));
  terminal.type("End");
  EXPECT_TRUE(terminal.shows("p199") || terminal.shows("p198")) << terminal.text();
  terminal.type("PPage");
  EXPECT_TRUE(terminal.stops_showing(" p199 ")) << terminal.text();
  terminal.type("Home");
  EXPECT_TRUE(terminal.shows("lines 1-")) << terminal.text();
  terminal.type("Down");
  EXPECT_TRUE(terminal.shows("lines 2-")) << terminal.text();
  terminal.type("ssss");
  terminal.type("k");
  EXPECT_TRUE(terminal.shows("by partition")) << terminal.text();
  terminal.type("q");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir_.file("ended")); }));
}

TEST_F(ToolDashboard, LeavesASummary) {
  const NatsServer nats;
  append(3);
  Terminal terminal{dir_, 100, 30, work(nats.url()) + "; cat"};
  ASSERT_TRUE(terminal.shows("this run 3")) << terminal.text();
  terminal.type("q");
  EXPECT_TRUE(terminal.shows("Published 3, retried 0, parked 0 in ")) << terminal.text();
  EXPECT_THAT(terminal.text(), Not(HasSubstr("q quit")));
}

TEST_F(ToolDashboard, PrintsLinesOnADumbTerminal) {
  const NatsServer nats;
  append(3);
  Terminal terminal{dir_, 200, 30, "TERM=dumb " + work(nats.url())};
  EXPECT_TRUE(terminal.shows("relaying: claimed ")) << terminal.text();
  EXPECT_THAT(terminal.text(), Not(HasSubstr("q quit")));
  terminal.type("C-c");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir_.file("ended")); }));
}

TEST_F(ToolDashboard, PublishesNothingForAnObserver) {
  const NatsServer nats;
  append(3);
  Terminal terminal{dir_, 140, 40, program() + " outbox top --db " + db_};
  ASSERT_TRUE(terminal.shows("pending 3")) << terminal.text();
  EXPECT_TRUE(agrees(terminal)) << terminal.text() << status();
  run_well({"outbox", "work", "--db", db_, "--until-empty", "--silent", "--stream", "SHOP",
            "--ensure-stream", "--nats", nats.url()});
  EXPECT_TRUE(terminal.shows("pending 0")) << terminal.text();
  terminal.type("C-c");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir_.file("ended")); }));
}

TEST_F(ToolDashboard, AnswersToItsKeysAndHandsOver) {
  const NatsServer nats;
  Terminal terminal{dir_, 100, 30, work(nats.url())};
  ASSERT_TRUE(terminal.shows("owned 4")) << terminal.text();
  terminal.type("?");
  EXPECT_TRUE(terminal.shows("Keys"));
  terminal.type("?");
  EXPECT_TRUE(terminal.stops_showing("Keys"));
  terminal.type("p");
  EXPECT_TRUE(terminal.shows("[paused]"));
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
  NatsServer nats;
  Terminal terminal{dir_, 140, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("broker connected")) << terminal.text();
  nats.kill();
  EXPECT_TRUE(terminal.shows("broker down")) << terminal.text();
  append(2);
  EXPECT_TRUE(terminal.shows("pending 2")) << terminal.text();
  EXPECT_TRUE(agrees(terminal)) << terminal.text() << status();
  EXPECT_THAT(line_with(terminal.text(), "Recent errors"), Not(HasSubstr("none")));

  nats.start_again();
  EXPECT_TRUE(terminal.shows("broker connected")) << terminal.text();
  EXPECT_TRUE(terminal.shows("pending 0")) << terminal.text();
  EXPECT_THAT(terminal.text(), Not(HasSubstr("broker down")));
  EXPECT_EQ(member(status(), "published"), "2");
  EXPECT_TRUE(agrees(terminal)) << terminal.text() << status();
}

TEST_F(ToolDashboard, AgreesWithTheStatus) {
  NatsServer nats{"max_payload: 1KB"};
  append(5);
  // As long as a stream's name may be, and too large for this broker.
  const std::string stream = "order-" + std::string(180, 'n');
  for (const std::string& data : {std::string(2'000, 'x'), std::string{"x"}}) {
    run_well({"events", "append", "--db", db_, "--stream", stream, "--type", "order.noted",
              "--publish", "--data", "{\"note\":\"" + data + "\"}"});
  }
  Terminal terminal{dir_, 140, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("parked 2")) << terminal.text();
  EXPECT_TRUE(terminal.shows("this run 5")) << terminal.text();
  EXPECT_TRUE(agrees(terminal)) << terminal.text() << status();
  EXPECT_TRUE(terminal.shows("order-nnnn")) << terminal.text();
  nats.pause();
  append(7);
  EXPECT_TRUE(agrees(terminal)) << terminal.text() << status();
  nats.resume();
  EXPECT_TRUE(terminal.shows("this run 12")) << terminal.text();
  EXPECT_TRUE(agrees(terminal)) << terminal.text() << status();
}

TEST_F(ToolDashboard, DegradesToFewLinesAndComesBack) {
  const NatsServer nats;
  append(3);
  Terminal terminal{dir_, 60, 8, work(nats.url())};
  ASSERT_TRUE(terminal.shows("this run 3")) << terminal.text();
  const std::string few = squeezed(terminal.text());
  for (const char* wanted : {"stela outbox work", "broker connected", "pending 0", "oldest -",
                             "parked 0", "owned 4 of 4", "workers 1", "q quit"}) {
    EXPECT_THAT(few, HasSubstr(wanted));
  }
  EXPECT_LE(lines_of(few).size(), 8U);
  terminal.resize(40, 10);
  EXPECT_TRUE(terminal.shows("owned 4 of 4")) << terminal.text();
  terminal.resize(20, 3);
  EXPECT_TRUE(terminal.stops_showing("parked")) << terminal.text();
  EXPECT_TRUE(terminal.shows("stela")) << terminal.text();
  terminal.resize(140, 40);
  EXPECT_TRUE(terminal.shows("latency")) << terminal.text();
  terminal.type("q");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir_.file("ended")); }));
}

TEST_F(ToolDashboard, DrawsChangesOnly) {
  const NatsServer nats;
  Terminal terminal{dir_, 140, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("owned 4")) << terminal.text();
  const std::string sent = dir_.file("sent");
  terminal.copy_to(sent);
  append(4);
  ASSERT_TRUE(terminal.shows("this run 4")) << terminal.text();
  ASSERT_TRUE(eventually([&] { return std::filesystem::file_size(sent) > 0; }));
  // Clearing the screen before it is drawn anew is what flickers.
  EXPECT_EQ(clearings_in(sent), 0);
  terminal.resize(100, 30);
  ASSERT_TRUE(eventually([&] { return clearings_in(sent) > 0; }));
  ASSERT_TRUE(terminal.shows("this run 4")) << terminal.text();
  append(1);
  ASSERT_TRUE(terminal.shows("this run 5")) << terminal.text();
  EXPECT_EQ(clearings_in(sent), 1);
}

/// What the screen says in each of the widths that it is laid out for.
bool shows_in_every_width(Terminal& terminal, const std::string& wanted) {
  for (const int width : {60, 80, 120, 200}) {
    terminal.resize(width, 40);
    if (!terminal.shows(wanted)) return false;
  }
  return true;
}

TEST_F(ToolDashboard, ShowsErrorsThatStandToAWorkerThatStarts) {
  const NatsServer nats{"max_payload: 1KB"};
  park_a_large_message(nats.url());
  Terminal terminal{dir_, 80, 40, work(nats.url())};
  EXPECT_TRUE(shows_in_every_width(terminal, "Payload Exceeded")) << terminal.text();
}

TEST_F(ToolDashboard, ShowsErrorsThatStandToAnObserver) {
  const NatsServer nats{"max_payload: 1KB"};
  park_a_large_message(nats.url());
  Terminal terminal{dir_, 80, 40, program() + " outbox top --db " + db_};
  EXPECT_TRUE(shows_in_every_width(terminal, "Payload Exceeded")) << terminal.text();
}

TEST_F(ToolDashboard, ShowsAnObserverWorkersAndWhatPartitionsWaitFor) {
  NatsServer nats;
  Terminal top{dir_, 80, 40, program() + " outbox top --db " + db_};
  append(12);
  EXPECT_TRUE(shows_in_every_width(top, " no worker")) << top.text();
  {
    Running worker{{"outbox", "work", "--db", db_, "--id", "w1", "--stream", "SHOP",
                    "--ensure-stream", "--nats", nats.url(), "--set", "outbox.lease_renew=100ms"}};
    EXPECT_TRUE(top.shows("published 12")) << top.text();
    EXPECT_TRUE(shows_in_every_width(top, " 4 connected")) << top.text();
    nats.kill();
    append(3);
    EXPECT_TRUE(shows_in_every_width(top, " waits: broker")) << top.text();
    EXPECT_TRUE(shows_in_every_width(top, " 4 cut off")) << top.text();
    EXPECT_TRUE(shows_in_every_width(top, "server available for connection")) << top.text();
    EXPECT_TRUE(top.shows("now w1 broker down: ")) << top.text();
    worker.signal(SIGKILL);
    worker.wait();
  }
  EXPECT_TRUE(top.shows(" no worker")) << top.text();
  EXPECT_TRUE(top.shows("~ w1 ")) << top.text();
}

TEST_F(ToolDashboard, ShowsAnObserverWhatFollowsTheLog) {
  ASSERT_EQ(run({"timers", "hold", "--why", "moving", "--db", db_}).code, 0);
  Terminal top{dir_, 80, 40, program() + " outbox top --db " + db_};
  EXPECT_TRUE(shows_in_every_width(top, "no timer would fire: ")) << top.text();
}

TEST_F(ToolDashboard, SaysWhyAWorkerCannotWrite) {
  const NatsServer nats;
  Terminal worker{dir_, 80, 40,
                  work(nats.url()) +
                      " --set outbox.heartbeat_ttl=1s --set outbox.lease_renew=200ms"
                      " --set store.busy_timeout=200ms"};
  EXPECT_TRUE(worker.shows("owned 4 of 4")) << worker.text();
  RawSqlite other{db_};
  other.run("BEGIN IMMEDIATE");
  EXPECT_TRUE(worker.shows("state database down")) << worker.text();
  EXPECT_TRUE(worker.shows("! database: no heartbeat could be written for ")) << worker.text();
  EXPECT_TRUE(worker.shows("lease expired")) << worker.text();
  other.run("ROLLBACK");
  EXPECT_TRUE(worker.shows("database answers")) << worker.text();
}

TEST_F(ToolDashboard, SaysOfWhenTheNumbersAreWhileTheDatabaseIsAway) {
  const NatsServer nats;
  append(2);
  Terminal worker{dir_, 80, 40, work(nats.url())};
  ASSERT_TRUE(worker.shows("this run 2")) << worker.text();
  std::filesystem::rename(db_, dir_.file("away.db"));
  EXPECT_TRUE(shows_in_every_width(worker, " as of ")) << worker.text();
  EXPECT_TRUE(worker.shows("state database down")) << worker.text();
  EXPECT_TRUE(worker.shows("! database: ")) << worker.text();
  std::filesystem::rename(dir_.file("away.db"), db_);
  EXPECT_TRUE(worker.stops_showing(" as of ")) << worker.text();
  EXPECT_TRUE(worker.shows("database answers")) << worker.text();
}

TEST_F(ToolDashboard, NoEscapeOfDataReachesTheTerminal) {
  const NatsServer nats;
  // Another worker, with a name that no tool of ours gives.
  append(1);
  RawSqlite raw{db_};
  const std::string soon = "(CAST(strftime('%s','now') AS INTEGER) + 14) * 1000000";
  const std::string evil = "'evil' || char(27) || '[41mred' || char(7)";
  raw.run(
      "INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off) VALUES (" +
      evil + ", 'h', 1, -1, 0, " + soon + ", 3600000000, 'connected', 0, 0)");
  raw.run("UPDATE outbox_partitions SET owner = " + evil + ", lease_until = " + soon +
          ", epoch = 1, lease_ttl = 3600000000 WHERE partition = 1");
  Terminal terminal{dir_, 200, 40, work(nats.url())};
  ASSERT_TRUE(terminal.shows("evil\\x1b[41mred")) << terminal.text();
  EXPECT_THAT(terminal.styled(), Not(HasSubstr("\x1b[41m")));
}

}  // namespace
}  // namespace stela::test::dashboard_test
