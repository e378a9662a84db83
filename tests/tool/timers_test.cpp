// What the tool says of timers, and does to them.
#include "projections/bookings.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::test::timers_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A hotel with two bookings: one is due in an hour, one was due two minutes ago.
class ToolTimers : public ::testing::Test {
 protected:
  ToolTimers() {
    projections_.add_process(PaymentDeadline{}, {.handling = {.max_attempts = 1}});
    request(store_, "1", 60);
    request(store_, "2", 1);
    run_process();
    TimerOperations{store_, "test"}.move(name_of("2"), system_clock().now() - 2min);
  }

  void run_process() { Runner{projections_}.run_once(); }
  static TimerName name_of(const std::string& key) {
    return {"payment_deadline", "booking-" + key, "not_paid"};
  }
  Ran tool(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--db", db_});
    return run(arguments);
  }
  Ran on_timer(const std::string& verb, const std::string& key,
               const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"timers", verb, "payment_deadline", "booking-" + key,
                                       "not_paid"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tool(arguments);
  }

  TempDir dir_;
  const std::string db_ = dir_.file("hotel.db");
  Store store_ = sqlite::open(db_);
  Projections projections_{store_};
};

TEST_F(ToolTimers, AreListed) {
  EXPECT_THAT(tool({"timers", "list"}).out, AllOf(HasSubstr("booking-1"), HasSubstr("booking-2")));
  EXPECT_THAT(tool({"timers", "list", "--due"}).out,
              AllOf(HasSubstr("booking-2"), Not(HasSubstr("booking-1"))));
  EXPECT_THAT(tool({"timers", "list", "--overdue"}).out, HasSubstr("booking-2"));
  EXPECT_THAT(tool({"timers", "list", "--key", "booking-1", "--kind", "not_paid", "--process",
                    "payment_deadline"})
                  .out,
              HasSubstr("booking-1"));
  EXPECT_THAT(tool({"timers", "list", "--kind", "remind"}).err, HasSubstr("No such timer is set."));
  EXPECT_EQ(tool({"timers", "list", "--due", "--parked"}).code, 2);
  const std::string json = tool({"timers", "list", "--due", "--json"}).out;
  EXPECT_EQ(member(json, "kind"), "not_paid");
  EXPECT_EQ(member(json, "key"), "booking-2");
}

TEST_F(ToolTimers, OfAKindAreLookedForAmongTwentyThousandAtOnce) {
  RawSqlite raw{db_};
  const std::string copies =
      "INSERT INTO projection_timers SELECT process, key || '-' || i, kind, version, generation, "
      "state, due_at + i, wake_at + i, attempts, error, recurrence, set_at, correlation_id, "
      "causation_id, metadata, payload FROM n, projection_timers WHERE key = 'booking-1'";
  raw.run("WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20005) " +
          copies);
  raw.run("UPDATE projection_timers SET kind = 'remind' WHERE key = 'booking-1-20005'");

  const std::string none = tool({"timers", "list", "--kind", "remind"}).err;
  ASSERT_THAT(none, HasSubstr("none among the first 20,000 timers; more: --after "));
  const std::size_t place = none.find("--after ") + 8;
  const std::string next = none.substr(place, none.find(',', place) - place);
  EXPECT_THAT(tool({"timers", "list", "--kind", "remind", "--after", next}).out,
              HasSubstr("booking-1-20005"));
  EXPECT_THAT(tool({"timers", "list", "--kind", "remind", "--look-further"}).out,
              HasSubstr("booking-1-20005"));
  EXPECT_THAT(tool({"timers", "list", "--key", "booking-1-20005"}).out, HasSubstr("remind"));
}

TEST_F(ToolTimers, AreListedPageByPageAndByTheirTimes) {
  const auto listed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"timers", "list", "--json"});
    std::string keys;
    for (const std::string& line : lines_of(tool(words).out)) keys += member(line, "key") + ' ';
    return keys;
  };
  const std::string end = tool({"timers", "list", "--limit", "1"}).err;
  ASSERT_THAT(end, HasSubstr("more: --after "));
  const std::string place = end.substr(14, end.size() - 15);
  EXPECT_THAT(place, HasSubstr("Z/payment_deadline/booking-2/not_paid"));
  EXPECT_EQ(listed({"--after", place}), "booking-1 ");
  EXPECT_EQ(listed({"--limit", "2"}), "booking-2 booking-1 ");
  EXPECT_EQ(tool({"timers", "list", "--limit", "2"}).err, "");
  EXPECT_EQ(listed({"--since", "1m"}), "booking-1 ");
  EXPECT_EQ(listed({"--until", "1m"}), "booking-2 ");
  EXPECT_EQ(listed({"--until", "1h"}), "");
  EXPECT_EQ(listed({"--since", member(tool({"timers", "list", "--due", "--json"}).out, "due_at")}),
            "booking-2 booking-1 ");
  EXPECT_EQ(tool({"timers", "list", "--after", "booking-2"}).code, 2);
}

TEST_F(ToolTimers, AreShown) {
  const Ran shown = on_timer("show", "1");
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, AllOf(HasSubstr("not_paid"), HasSubstr(R"({"booking":"1"})")));
  const Ran missing = on_timer("show", "3");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("isn't set"));
}

TEST_F(ToolTimers, AreMovedCancelledAndFired) {
  EXPECT_EQ(on_timer("move", "2", {"+2h"}).code, 0);
  EXPECT_EQ(on_timer("move", "2", {"+2"}).code, 2);
  EXPECT_EQ(on_timer("move", "2", {"tomorrow"}).code, 2);
  EXPECT_THAT(on_timer("move", "2", {"15m"}).err, HasSubstr("or +15m for in 15m; not '15m'"));
  EXPECT_THAT(on_timer("move", "2", {"2026-13-01"}).err,
              HasSubstr("or +15m for in 15m; not '2026-13-01'"));
  EXPECT_THAT(on_timer("move", "2", {"+9999999999h"}).err,
              HasSubstr("TIME after + is at most a century, not '9999999999h'"));
  EXPECT_THAT(tool({"timers", "list", "--due"}).out, IsEmpty());
  EXPECT_EQ(on_timer("fire", "1").code, 0);
  run_process();
  EXPECT_THAT(history(store_), ::testing::ElementsAre("1 requested", "2 requested", "1 cancelled"));
  EXPECT_EQ(on_timer("cancel", "2").code, 2) << "nobody is there to confirm it";
  EXPECT_EQ(on_timer("cancel", "2", {"--yes"}).code, 0);
  EXPECT_EQ(on_timer("cancel", "2", {"--yes"}).code, 3);
  EXPECT_THAT(tool({"timers", "log"}).out,
              AllOf(HasSubstr("cancel"), HasSubstr("fire"), HasSubstr("move")));
}

TEST_F(ToolTimers, AreCountedByProcess) {
  EXPECT_THAT(tool({"processes", "list"}).out, HasSubstr("payment_deadline"));
  const std::string json = tool({"processes", "show", "payment_deadline", "--json"}).out;
  EXPECT_EQ(member(json, "pending"), "2");
  EXPECT_EQ(member(json, "overdue"), "1");
  EXPECT_EQ(tool({"processes", "show", "nobody"}).code, 3);
}

TEST_F(ToolTimers, AreCheckedByDoctorAndForMonitoring) {
  EXPECT_THAT(tool({"doctor"}).out,
              AllOf(HasSubstr("is late with 1 timer"), HasSubstr("no runner drives it")));
  EXPECT_EQ(tool({"timers", "check"}).code, 1);
  EXPECT_EQ(tool({"timers", "check", "--max-late", "90s"}).code, 2);
  EXPECT_EQ(tool({"timers", "check", "--warn-late", "1h"}).code, 0);
  EXPECT_EQ(tool({"timers", "check", "--warn-late", "soon"}).code, 3);
}

TEST_F(ToolTimers, ThatAreTriedAgainCountAsLate) {
  Projections failing{store_};
  failing.add_process(
      PaymentDeadline{[](stela::Process&, const std::string&) { throw std::runtime_error{"no"}; }},
      {.handling = {.retry_backoff = 1h, .retry_backoff_max = 1h}});
  EXPECT_EQ(Runner{failing}.run_once().timers_failed, 1);

  EXPECT_EQ(tool({"timers", "check"}).code, 1);
  EXPECT_THAT(tool({"doctor"}).out, HasSubstr("is late with 1 timer"));
  EXPECT_EQ(member(tool({"processes", "show", "payment_deadline", "--json"}).out, "overdue"), "1");
}

TEST(ToolTimerHolds, AreNoProblemWhereThereIsNoProcess) {
  const TempDir dir;
  const std::string db = dir.file("plain.db");
  Store store = sqlite::open(db);
  const Projections projections{store};
  TimerOperations{store, "test"}.hold("moving house");

  const Ran doctor = run({"doctor", "--db", db});
  EXPECT_EQ(doctor.code, 0);
  EXPECT_THAT(doctor.out, HasSubstr("no timer would fire: moving house"));
}

TEST_F(ToolTimers, AreHeldAndResumed) {
  EXPECT_EQ(tool({"timers", "hold", "--why", "moving house"}).code, 0);
  run_process();
  EXPECT_THAT(history(store_), ::testing::ElementsAre("1 requested", "2 requested"));
  EXPECT_THAT(tool({"doctor"}).out, HasSubstr("no timer fires: moving house"));
  EXPECT_EQ(tool({"timers", "check", "--warn-late", "1h"}).code, 1);

  EXPECT_THAT(tool({"timers", "resume", "--dry-run"}).out, HasSubstr("booking-2"));
  EXPECT_EQ(tool({"timers", "resume"}).code, 2) << "nobody is there to confirm it";
  EXPECT_EQ(tool({"timers", "resume", "--yes"}).code, 0);

  run_process();
  EXPECT_THAT(history(store_), ::testing::ElementsAre("1 requested", "2 requested", "2 cancelled"));
}

TEST_F(ToolTimers, OfARestoredBackupAreListedBeforeTheyFire) {
  const std::string copy = dir_.file("copy.db");
  EXPECT_EQ(run({"backup", copy, "--db", db_}).code, 0);

  const Ran resume = run({"timers", "resume", "--dry-run", "--db", copy});

  EXPECT_THAT(resume.out, AllOf(HasSubstr("booking-2"), HasSubstr("is a backup")));
  EXPECT_THAT(run({"timers", "list", "--db", copy}).err, HasSubstr("No timer fires"));
}

TEST_F(ToolTimers, MoveWithTheirStore) {
  const std::string lines = dir_.file("hotel.jsonl");
  const std::string moved = dir_.file("moved.db");
  EXPECT_EQ(tool({"export", "--whole", lines}).code, 0);
  EXPECT_EQ(run({"migrate", "--db", moved}).code, 0);

  const Ran import = run({"import", lines, "--db", moved});

  EXPECT_EQ(import.code, 0);
  EXPECT_THAT(import.err, HasSubstr("No timer fires: this store was imported"));
  EXPECT_THAT(run({"timers", "check", "--warn-late", "1h", "--db", moved}).out,
              HasSubstr("no timer fires"));
  EXPECT_THAT(run({"timers", "resume", "--yes", "--db", moved}).out, HasSubstr("booking-2"));
  Store store = sqlite::open(moved);
  Projections projections{store};
  projections.add_process(PaymentDeadline{});
  EXPECT_EQ(Runner{projections}.run_once().timers_fired, 1);
  EXPECT_THAT(history(store), ::testing::ElementsAre("1 requested", "2 requested", "2 cancelled"));
}

TEST_F(ToolTimers, ThatAnExportOfEventsLeavesOutAreCounted) {
  EXPECT_THAT(tool({"export", dir_.file("hotel.jsonl")}).err, HasSubstr("Left out: 2 timers"));
}

}  // namespace
}  // namespace stela::test::timers_test
