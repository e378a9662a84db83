// What options choose: messages by type and error, events by time.
#include "cli/exit.hpp"
#include "event_text.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test::filters_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ToolFilters : public ToolOutbox {
 protected:
  void SetUp() override {
    ToolOutbox::SetUp();
    run_well({"events", "append", "--db", db_, "--stream", "order-4", "--type", "order.paid",
              "--publish", "--data", "{}"});
    park(1);
    park(4);
    RawSqlite{db_}.run("UPDATE outbox_parked SET error = 'no room' WHERE sequence = 4");
  }
  std::vector<std::string> listed(std::vector<std::string> words) const {
    words.insert(words.begin(), {"list", "--json"});
    return lines_of(outbox(words).out);
  }
};

TEST_F(ToolFilters, ListByTypeAndError) {
  EXPECT_THAT(listed({"--type", "order.placed"}), SizeIs(3));
  EXPECT_THAT(listed({"--type", "order.paid"}), SizeIs(1));
  EXPECT_THAT(listed({"--error", "room"}), SizeIs(1));
  EXPECT_THAT(listed({"--error", "Room"}), SizeIs(1));
  EXPECT_THAT(listed({"--error", "room", "--type", "order.placed"}), IsEmpty());
  EXPECT_THAT(listed({"--state", "parked", "--error", "too large"}), SizeIs(1));
  EXPECT_THAT(listed({"--stream", "order-4", "--error", "too large"}), IsEmpty());
}

TEST_F(ToolFilters, RetryByTypeAndError) {
  EXPECT_EQ(member(outbox({"retry", "--error", "nothing", "--json"}).out, "messages"), "0");
  const Ran planned = outbox({"retry", "--type", "order.placed", "--dry-run", "--json"});
  EXPECT_EQ(member(planned.out, "messages"), "1");
  EXPECT_EQ(member(outbox({"retry", "--error", "NO ROOM", "--json"}).out, "messages"), "1");
  EXPECT_THAT(listed({"--state", "parked"}), SizeIs(1));
  EXPECT_EQ(outbox({"retry", "1", "--type", "order.placed"}).code, 2);
  EXPECT_EQ(outbox({"retry", "--stream", "order-1", "--error", "x"}).code, 2);
}

std::string as_text(std::string_view text) {
  return to_string(tool::to_time(text, "--since"));
}

TEST(ToolTimes, AreDatesTimesAndOffsets) {
  const std::string morning = "2026-11-23T08:00:00";
  for (const char* text : {"2026-11-23T08:00:00Z", "2026-11-23T08:00Z", "2026-11-23T08:00",
                           "2026-11-23 08:00", "2026-11-23T10:00+02:00", "2026-11-23T10:00:00+0200",
                           "2026-11-23T02:30-05:30", "2026-11-23T10:00+02"}) {
    EXPECT_THAT(as_text(text), ::testing::StartsWith(morning)) << text;
  }
  EXPECT_THAT(as_text("2026-11-23"), ::testing::StartsWith("2026-11-23T00:00:00"));
  const auto ago = system_clock().now() - tool::to_time("2h", "--since");
  EXPECT_GE(ago, 2h - 1s);
  EXPECT_LE(ago, 2h + 1min);
}

TEST(ToolTimes, AreRefusedIfTheyAreNone) {
  for (const char* text :
       {"", "now", "2026", "2026-13-01", "2026-11-23T25:00", "2026-11-23T10", "2026-11-23T10:00+2",
        "2026-11-23T10:00+99:00", "2026-11-23Z", "2026-11-23T10:00+02:00x", "2026-11-23T10:00-"}) {
    EXPECT_THROW(tool::to_time(text, "--since"), tool::Misuse) << text;
  }
}

TEST_F(ToolFilters, EventsSinceADateAndWithAZone) {
  EXPECT_THAT(run_well({"events", "list", "--db", db_, "--since", "2020-01-01"}),
              ::testing::ContainsRegex("....-..-.. ..:..:..Z"));
  EXPECT_THAT(run_well({"events", "list", "--db", db_, "--until", "2020-01-01T10:00+02:00"}),
              Not(HasSubstr("order-1")));
}

}  // namespace
}  // namespace stela::test::filters_test
