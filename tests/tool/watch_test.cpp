// `outbox status --watch` and `outbox top` where there is no terminal to draw on.
#include "support/process.hpp"
#include "tool/outbox_of_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace stela::test::watch_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class ToolWatch : public OutboxOfOrders {
 protected:
  static bool has_lines(Running& running, std::size_t count) {
    return eventually([&] { return lines_of(running.out()).size() >= count; });
  }
};

TEST_F(ToolWatch, PrintsALineEachTimeUntilItIsStopped) {
  append(2);
  Running watch{{"outbox", "status", "--db", db_, "--watch", "100ms"}};
  ASSERT_TRUE(has_lines(watch, 2)) << watch.out() << watch.err();
  EXPECT_THAT(lines_of(watch.out())[0],
              MatchesRegex("....-..-..T..:..:..Z pending 2, in flight 0, retrying 0, parked 0, "
                           "published 0, stopped 0, oldest .*, live workers 0"));
  append(1);
  EXPECT_TRUE(eventually([&] { return watch.out().find("pending 3") != std::string::npos; }));
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(), 0);
  EXPECT_EQ(watch.err(), "");
}

TEST_F(ToolWatch, PrintsAnObjectEachTimeAsJson) {
  append(2);
  Running watch{{"outbox", "status", "--db", db_, "--watch", "100ms", "--json"}};
  ASSERT_TRUE(has_lines(watch, 2)) << watch.out() << watch.err();
  for (const std::string& line : lines_of(watch.out())) EXPECT_EQ(member(line, "pending"), "2");
}

TEST_F(ToolWatch, RedrawsTheStatusOnATerminal) {
  append(2);
  Running watch{{"outbox", "status", "--db", db_, "--watch", "100ms"}, {.in_terminal = true}};
  const std::string cleared = "\x1b[H\x1b[2J";
  EXPECT_TRUE(eventually([&] {
    const std::string screen = watch.out();
    return screen.find(cleared, screen.find(cleared) + 1) != std::string::npos;
  })) << watch.out();
  EXPECT_THAT(watch.out(), HasSubstr("PARTITION"));
}

TEST_F(ToolWatch, WantsAnIntervalWithItsUnit) {
  for (const char* wrong : {"2", "10ms", "often"}) {
    const Ran ran = run({"outbox", "status", "--db", db_, "--watch", wrong});
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_THAT(ran.err, HasSubstr("--watch is"));
  }
}

TEST_F(ToolWatch, TopPrintsLinesWithoutATerminal) {
  append(2);
  Running top{{"outbox", "top", "--db", db_}};
  ASSERT_TRUE(has_lines(top, 1)) << top.err();
  EXPECT_THAT(top.out(), HasSubstr("pending 2, in flight 0"));
  EXPECT_THAT(top.out(), Not(HasSubstr("\x1b")));
  top.signal(SIGTERM);
  EXPECT_EQ(top.wait(), 0);
}

}  // namespace
}  // namespace stela::test::watch_test
