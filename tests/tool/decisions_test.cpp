// Decisions of any language, through the tool: the shapes of its lines, byte by byte.
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stela::test::decisions_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* subscribe =
    R"({"events":[{"stream":"course-c1","type":"course.subscribed","data":{"n":1},"tags":["student-s1"],"publish":true}],)"
    R"("condition":{"query":[{"types":["course.subscribed"],"tags":["course-c1"]}],"after":0}})";

class ToolDecisions : public ::testing::Test {
 protected:
  void SetUp() override { run_well({"migrate", "--db", db_}); }
  Ran append(const std::string& lines, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"events", "append", "--db", db_, "--stdin"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {.input = lines});
  }
  std::vector<std::string> query(std::vector<std::string> more) {
    std::vector<std::string> words{"events", "query", "--db", db_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return lines_of(run_well(words));
  }
  void enrol() {
    const Ran ran = append(
        R"({"events":[{"stream":"course-c1","type":"course.defined","data":{}},)"
        R"({"stream":"course-c2","type":"course.defined","data":{}},)"
        R"({"stream":"course-c1","type":"course.subscribed","data":{},"tags":["student-s1","term-7"]}]})");
    ASSERT_EQ(ran.code, 0) << ran.err;
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

TEST_F(ToolDecisions, PrintOneLineForEachLine) {
  const Ran ran = append(std::string{subscribe} + "\n" + subscribe + "\n");

  EXPECT_EQ(ran.out, "{\"first\":1,\"last\":1}\n{\"conflict\":{\"position\":1,\"query\":0}}\n");
  EXPECT_EQ(ran.code, 5);
}

TEST_F(ToolDecisions, ContinueAfterAConflictUnlessToldToStop) {
  const std::string other =
      R"({"events":[{"stream":"course-c2","type":"course.defined","data":{}}]})";
  const std::string lines = std::string{subscribe} + "\n" + subscribe + "\n" + other + "\n";

  EXPECT_EQ(append(lines, {"--stop-on-conflict"}).out,
            "{\"first\":1,\"last\":1}\n{\"conflict\":{\"position\":1,\"query\":0}}\n");
  const Ran ran = append(lines);
  EXPECT_EQ(
      ran.out,
      "{\"conflict\":{\"position\":1,\"query\":0}}\n{\"conflict\":{\"position\":1,\"query\":0}}"
      "\n{\"first\":2,\"last\":2}\n");
  EXPECT_EQ(ran.code, 5);
}

TEST_F(ToolDecisions, ReportAPositionAfterTheLastEvent) {
  enrol();
  const Ran ran = append(
      R"({"events":[{"stream":"course-c1","type":"a","data":{}}],"condition":{"query":[{"tags":["student-s9"]}],"after":9}})"
      "\n"
      R"({"events":[{"stream":"course-c1","type":"a","data":{}}],"condition":{"query":[{"tags":["student-s9"]}],"after":3}})"
      "\n");

  EXPECT_EQ(ran.out, "{\"conflict\":{\"after\":9,\"head\":3}}\n{\"first\":4,\"last\":4}\n");
  EXPECT_EQ(ran.code, 5);
}

TEST_F(ToolDecisions, ReportAnExpectedVersionThatWasNot) {
  enrol();
  const Ran ran = append(
      R"({"events":[{"stream":"course-c1","type":"a","data":{}}],"expected":{"course-c1":7}})"
      "\n"
      R"({"events":[{"stream":"course-c1","type":"a","data":{}}],"expected":{"course-c1":2}})"
      "\n"
      R"({"events":[],"expected":{"course-c2":0}})"
      "\n");

  EXPECT_EQ(ran.out,
            "{\"conflict\":{\"stream\":\"course-c1\",\"expected\":7,\"stream_version\":2}}\n"
            "{\"first\":4,\"last\":4}\n"
            "{\"conflict\":{\"stream\":\"course-c2\",\"expected\":0,\"stream_version\":1}}\n");
  EXPECT_EQ(ran.code, 5);
}

TEST_F(ToolDecisions, UnderAnIdAreRepeated) {
  const std::string line =
      R"({"events":[{"stream":"course-c1","type":"a","data":{}},{"stream":"course-c2","type":"a","data":{}}],"id":"request-7"})";
  const Ran ran = append(line + "\n" + line + "\n");

  EXPECT_EQ(ran.out, "{\"first\":1,\"last\":2}\n{\"first\":1,\"last\":2,\"repeated\":true}\n");
  EXPECT_EQ(ran.code, 0);
}

TEST_F(ToolDecisions, KeepTheFieldsOfEachEvent) {
  const Ran ran = append(
      R"({"events":[{"stream":"order-1","type":"a","version":3,"data":{},)"
      R"("id":"0190f5a0-0000-7000-8000-000000000001","correlation":"c-1",)"
      R"("causation":"0190f5a0-0000-7000-8000-000000000002","actor":"jane","headers":{"tenant":"acme"}},)"
      R"({"stream":"order-1","type":"b","data":{}}]})");
  ASSERT_EQ(ran.code, 0) << ran.err;

  const std::string first = run_well({"events", "show", "1", "--db", db_, "--json"});
  EXPECT_THAT(first, HasSubstr(R"("id":"0190f5a0-0000-7000-8000-000000000001")"));
  EXPECT_THAT(first, HasSubstr(R"("schema_version":3)"));
  EXPECT_THAT(first, HasSubstr(R"("correlation_id":"c-1")"));
  EXPECT_THAT(first, HasSubstr(R"("causation_id":"0190f5a0-0000-7000-8000-000000000002")"));
  EXPECT_THAT(first, HasSubstr(R"("actor":"jane")"));
  EXPECT_THAT(first, HasSubstr(R"("headers":{"tenant":"acme"})"));
  const std::string second = run_well({"events", "show", "2", "--db", db_, "--json"});
  EXPECT_THAT(second, Not(HasSubstr("jane")));
  EXPECT_THAT(second, HasSubstr(R"("correlation_id":"0190f5a0-0000-7000-8000-000000000001")"));
}

TEST_F(ToolDecisions, ReadWhatMatchesAndTheHead) {
  enrol();

  const auto both = query({"--type", "course.subscribed", "--tag", "student-s1", "--or", "--type",
                           "course.defined", "--tag", "course-c2"});
  ASSERT_THAT(both, SizeIs(3));
  EXPECT_THAT(both[0], HasSubstr(R"({"sequence":2,"stream":"course-c2","stream_version":1,)"));
  EXPECT_THAT(both[0], HasSubstr(R"("type":"course.defined","tags":[])"));
  EXPECT_THAT(both[1], HasSubstr(R"("type":"course.subscribed","tags":["student-s1","term-7"])"));
  EXPECT_EQ(both[2], R"({"head":3})");
  EXPECT_THAT(query({"--tag", "course-c1"}), SizeIs(3));
  EXPECT_THAT(query({"--tag", "course-c1", "--tag", "student-s1"}), SizeIs(2));
  EXPECT_THAT(query({"--tag", "course-c1", "--after", "1"}), SizeIs(2));
  EXPECT_THAT(query({"--tag", "course-c9"}), ElementsAre(R"({"head":3})"));
  EXPECT_EQ(run_well({"events", "head", "--db", db_, "--json"}), "{\"head\":3}\n");
}

TEST_F(ToolDecisions, RefuseWhatCannotBeDecided) {
  EXPECT_EQ(run({"events", "query", "--db", db_}).code, 2);
  EXPECT_EQ(run({"events", "query", "--db", db_, "--tag", "a-1", "--or"}).code, 2);
  EXPECT_EQ(append(R"({"events":[],"condition":{"query":[{"types":["a"]}]}})").code, 1);
  EXPECT_EQ(append(R"({"events":[],"condition":{"query":[]}})").code, 1);
  EXPECT_EQ(append(R"({"events":[],"condition":{"qery":[]}})").code, 1);
  EXPECT_EQ(append(R"({"events":[{"stream":"a-1","type":"a"}]})").code, 1);
  EXPECT_EQ(append(R"({"events":[{"stream":"a-1","type":"a","data":{},"tags":["no tag"]}]})").code,
            1);
  EXPECT_EQ(run_well({"events", "head", "--db", db_, "--json"}), "{\"head\":0}\n");
}

TEST_F(ToolDecisions, LeaveTheLinesOfOneEventAsTheyWere) {
  const Ran ran =
      append(R"({"stream":"order-1","type":"a","data":{},"tags":["student-s1"]})"
             "\n" +
             std::string{subscribe} + "\n" + R"({"stream":"order-1","type":"a","data":{}})" + "\n");

  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto out = lines_of(ran.out);
  ASSERT_THAT(out, SizeIs(3));
  EXPECT_EQ(member(out[0], "sequence"), "1");
  EXPECT_EQ(out[1], R"({"first":2,"last":2})");
  EXPECT_EQ(member(out[2], "stream_version"), "2");
}

TEST_F(ToolDecisions, OfOneEventReportTheirConflictsAndContinue) {
  const std::string first = R"({"stream":"order-1","type":"a","data":{},"expected":0})";
  const std::string other = R"({"stream":"order-2","type":"a","data":{}})";
  const std::string lines = first + "\n" + first + "\n" + other + "\n";
  const Ran ran = append(lines);

  EXPECT_EQ(ran.code, 5) << ran.err;
  const auto out = lines_of(ran.out);
  ASSERT_THAT(out, SizeIs(3));
  EXPECT_EQ(member(out[0], "sequence"), "1");
  EXPECT_EQ(out[1], R"({"conflict":{"stream":"order-1","expected":0,"stream_version":1}})");
  EXPECT_EQ(member(out[2], "sequence"), "2");
}

TEST_F(ToolDecisions, OfOneEventLeaveConflictsOutOfTheirBatch) {
  const std::string first = R"({"stream":"order-1","type":"a","data":{},"expected":0})";
  const std::string other = R"({"stream":"order-2","type":"a","data":{}})";
  const std::string lines = first + "\n" + first + "\n" + other + "\n" + other + "\n";
  const Ran ran = append(lines, {"--batch", "3"});

  EXPECT_EQ(ran.code, 5) << ran.err;
  const auto out = lines_of(ran.out);
  ASSERT_THAT(out, SizeIs(4));
  EXPECT_EQ(member(out[0], "sequence"), "1");
  EXPECT_EQ(out[1], R"({"conflict":{"stream":"order-1","expected":0,"stream_version":1}})");
  EXPECT_EQ(member(out[2], "sequence"), "2");
  EXPECT_EQ(member(out[3], "sequence"), "3");

  const Ran stopped = append(other + "\n" + lines, {"--batch", "9", "--stop-on-conflict"});
  EXPECT_EQ(stopped.code, 5) << stopped.err;
  ASSERT_THAT(lines_of(stopped.out), SizeIs(2));
  EXPECT_EQ(lines_of(stopped.out)[1],
            R"({"conflict":{"stream":"order-1","expected":0,"stream_version":1}})");
  EXPECT_EQ(run_well({"events", "head", "--db", db_, "--json"}), "{\"head\":4}\n");
}

TEST_F(ToolDecisions, RefuseAnEmptyIdAndAConditionWithoutAQuery) {
  const std::string events = R"({"events":[{"stream":"a-1","type":"a","data":{}}],)";
  const std::vector<std::pair<std::string, std::string>> lines{
      {R"("id":""})", "id is empty"},
      {R"("condition":{"query":[]}})", "a query with one item at least"},
      {R"("condition":{"after":0}})", "a query with one item at least"}};

  for (const auto& [line, problem] : lines) {
    const Ran ran = append(events + line);
    EXPECT_EQ(ran.code, 1) << line;
    EXPECT_THAT(ran.err, HasSubstr(problem));
  }
  EXPECT_EQ(run_well({"events", "head", "--db", db_, "--json"}), "{\"head\":0}\n");
}

TEST_F(ToolDecisions, RefuseFieldsThatAppearTwice) {
  const std::string event = R"({"stream":"a-1","type":"a","data":{}})";
  const std::string query = R"("query":[{"tags":["a-1"]}])";
  const std::vector<std::pair<std::string, std::string>> lines{
      {R"({"stream":"a-1","type":"a","data":{},"data":{"n":1}})", "data appears twice"},
      {R"({"stream":"a-1","type":"a","data":{},"str\u0065am":"a-2"})", "stream appears twice"},
      {R"({"events":[)" + event + R"(],"condition":{)" + query + "},\"condition\":{" + query + "}}",
       "condition appears twice"},
      {R"({"events":[)" + event + R"(],"events":[]})", "events appears twice"},
      {R"({"events":[)" + event + R"(],"id":"x","id":"y"})", "id appears twice"},
      {R"({"events":[)" + event + R"(],"condition":{)" + query + "," + query + "}}",
       "condition.query appears twice"},
      {R"({"events":[)" + event + R"(],"condition":{"query":[{"tags":["a-1"],"tags":[]}]}})",
       "condition.query[0].tags appears twice"},
      {R"({"events":[)" + event + R"(],"condition":{"after":1,"after":2,)" + query + "}}",
       "condition.after appears twice"},
      {R"({"events":[)" + event + R"(],"expected":{"a-1":0,"a-1":1}})",
       "expected.a-1 appears twice"},
      {R"({"events":[{"stream":"a-1","stream":"a-2","type":"a","data":{}}]})",
       "events[0].stream appears twice"},
      {R"({"events":[{"stream":"a-1","type":"a","data":{},"headers":{"h":"1","h":"2"}}]})",
       "events[0].headers.h appears twice"}};
  for (const auto& [line, problem] : lines) {
    const Ran ran = append(line);
    EXPECT_EQ(ran.code, 1) << line;
    EXPECT_THAT(ran.err, HasSubstr("line 1: " + problem)) << line;
  }
  EXPECT_EQ(run_well({"events", "head", "--db", db_, "--json"}), "{\"head\":0}\n");
}

TEST_F(ToolDecisions, NameTheLimitThatALineExceeds) {
  const auto list = [](int count, const std::string& one) {
    std::string all = one;
    for (int i = 1; i < count; ++i) all += "," + one;
    return all;
  };
  const auto query = [](const std::string& items) {
    return R"({"events":[],"condition":{"after":0,"query":[)" + items + "]}}";
  };
  const std::string tags = list(101, R"("b-1")");
  const std::vector<std::pair<std::string, std::string>> lines{
      {R"({"stream":"a-1","type":"a","data":{},"tags":[)" + tags + "]}",
       "a: an event has at most 100 tags, and this one has 101"},
      {R"({"events":[{"stream":"a-1","type":"a","data":{},"tags":[)" + tags + "]}]}",
       "a: an event has at most 100 tags, and this one has 101"},
      {query(list(10'001, R"({"tags":["b-1"]})")),
       "a query has at most 10000 items, and this one has 10001"},
      {query(R"({"tags":[)" + tags + "]}"),
       "a query has at most 100 tags in an item, and this one has 101"},
      {query(R"({"types":[)" + list(1001, R"("a")") + "]}"),
       "a query has at most 1000 types in an item, and this one has 1001"}};
  for (const auto& [line, problem] : lines) {
    const Ran ran = append(line);
    EXPECT_EQ(ran.code, 1) << problem;
    EXPECT_THAT(ran.err, HasSubstr("line 1: " + problem));
  }
  const Ran ran = append(query(list(10'000, R"({"tags":["b-1"]})")));
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST_F(ToolDecisions, ListAndShowTags) {
  enrol();

  EXPECT_EQ(run_well({"tags", "list", "--db", db_, "--json"}),
            "{\"tag\":\"student-s1\",\"first\":3}\n{\"tag\":\"term-7\",\"first\":3}\n");
  EXPECT_EQ(run_well({"tags", "list", "--db", db_}),
            "TAG         FIRST EVENT\nstudent-s1            3\nterm-7                3\n");
  EXPECT_EQ(run_well({"tags", "list", "--db", db_, "--json", "--category", "term"}),
            "{\"tag\":\"term-7\",\"first\":3}\n");
  const Ran first = run({"tags", "list", "--db", db_, "--limit", "1", "--json"});
  const std::string tag = member(first.out, "tag");
  EXPECT_EQ(first.err, "more: --after " + tag + "\n");
  const Ran second = run({"tags", "list", "--db", db_, "--after", tag, "--json"});
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(std::set({tag, member(second.out, "tag")}),
            std::set<std::string>({"student-s1", "term-7"}));
  EXPECT_THAT(lines_of(run_well({"tags", "show", "course-c1", "--db", db_, "--json"})), SizeIs(2));
  EXPECT_EQ(run({"tags", "show", "course-c9", "--db", db_}).code, 3);
  EXPECT_THAT(run_well({"events", "show", "3", "--db", db_}), HasSubstr("student-s1"));
  EXPECT_THAT(run_well({"streams", "show", "course-c1", "--db", db_, "--json"}),
              HasSubstr(R"("tags":["student-s1","term-7"])"));
  EXPECT_THAT(run_well({"tags", "types", "--db", db_, "--json"}), IsEmpty());
  EXPECT_EQ(run_well({"tags", "types", "--db", db_}), "TYPE  CATEGORY  ALWAYS  SEVERAL  SINCE\n");
  EXPECT_EQ(run({"tags", "forget", "--db", db_, "--type", "a", "--category", "b", "--yes"}).code,
            3);
  EXPECT_EQ(run({"tags", "add", "--db", db_, "--type", "course.subscribed"}).code, 1);
}

}  // namespace
}  // namespace stela::test::decisions_test
