// Lists: which end they begin at, how much they look at, and how they go on.
#include "support/process.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::test::lists_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// order-1, order-2 and order-3 are placed and wait; then order-1 is paid.
class ToolLists : public ToolOutbox {
 protected:
  void SetUp() override {
    ToolOutbox::SetUp();
    append(R"({"stream":"order-1","type":"order.paid","data":{},"tags":["customer-7"]})");
  }
  void append(const std::string& lines) const {
    const Ran ran =
        run({"events", "append", "--db", db_, "--stdin", "--batch", "1000"}, {.input = lines});
    EXPECT_EQ(ran.code, 0) << ran.err;
  }
  Ran list(std::vector<std::string> words) const {
    words.insert(words.end(), {"--db", db_, "--json"});
    return run(words);
  }
  /// The sequences that it lists.
  std::vector<std::string> listed(const std::vector<std::string>& words) const {
    std::vector<std::string> found;
    for (const std::string& line : lines_of(list(words).out)) {
      found.push_back(member(line, "sequence"));
    }
    return found;
  }
};

TEST_F(ToolLists, ContinueAfterTheLastRow) {
  const Ran oldest = list({"events", "list", "--limit", "2"});
  EXPECT_EQ(oldest.err, "more: --after 2\n");
  EXPECT_THAT(listed({"events", "list", "--after", "2"}), ElementsAre("3", "4"));

  const Ran newest = list({"events", "list", "--limit", "2", "--newest-first"});
  EXPECT_EQ(newest.err, "more: --after 3\n");
  EXPECT_THAT(listed({"events", "list", "--after", "3", "--newest-first"}), ElementsAre("2", "1"));

  EXPECT_THAT(list({"events", "list", "--limit", "4"}).err, IsEmpty()) << "that was all";
}

TEST_F(ToolLists, OfAStreamBeginAtEitherEnd) {
  const std::vector<std::string> show{"streams", "show", "order-1"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), show.begin(), show.end());
    return words;
  };
  EXPECT_THAT(listed(with({"--newest-first"})), ElementsAre("4", "1"));
  EXPECT_EQ(list(with({"--newest-first", "--limit", "1"})).err, "more: --after 2\n") << "a version";
  EXPECT_THAT(listed(with({"--newest-first", "--after", "2"})), ElementsAre("1"));
  EXPECT_THAT(listed(with({"--type", "order.paid"})), ElementsAre("4"));
  EXPECT_THAT(listed(with({"--since", "1h"})), ElementsAre("1", "4"));
  EXPECT_EQ(list(with({"--until", "1h"})).code, 3);
  EXPECT_THAT(listed({"events", "list", "--stream", "order-1", "--newest-first"}),
              ElementsAre("4", "1"));
  EXPECT_THAT(listed({"events", "list", "--stream", "order-1", "--after", "1"}), ElementsAre("4"));
}

TEST_F(ToolLists, OfATagBeginAtEitherEnd) {
  append(R"({"stream":"order-5","type":"order.placed","data":{},"tags":["customer-7"]})");
  const std::string tag = "customer-7";
  EXPECT_THAT(listed({"tags", "show", tag}), ElementsAre("4", "5"));
  EXPECT_THAT(listed({"tags", "show", tag, "--newest-first"}), ElementsAre("5", "4"));
  EXPECT_EQ(list({"tags", "show", tag, "--newest-first", "--limit", "1"}).err, "more: --after 5\n");
  EXPECT_THAT(listed({"tags", "show", tag, "--newest-first", "--after", "5"}), ElementsAre("4"));
  EXPECT_THAT(listed({"tags", "show", tag, "--type", "order.placed"}), ElementsAre("5"));
  EXPECT_THAT(listed({"tags", "show", tag, "--since", "1h"}), ElementsAre("4", "5"));
  EXPECT_EQ(list({"tags", "show", tag, "--until", "1h"}).code, 3);
}

TEST_F(ToolLists, OfMessagesBeginAtEitherEnd) {
  park(2);
  const Ran newest = list({"outbox", "list", "--newest-first", "--limit", "2"});
  EXPECT_EQ(newest.err, "more: --after 2\n");
  EXPECT_THAT(listed({"outbox", "list", "--newest-first"}), ElementsAre("3", "2", "1"));
  EXPECT_THAT(listed({"outbox", "list", "--newest-first", "--after", "2"}), ElementsAre("1"));
  EXPECT_THAT(listed({"outbox", "list", "--stream", "order-1", "--newest-first"}),
              ElementsAre("1"));
  EXPECT_THAT(listed({"outbox", "list", "--since", "1h"}), SizeIs(3));
  EXPECT_THAT(listed({"outbox", "list", "--until", "1h"}), IsEmpty());
}

TEST_F(ToolLists, OfAQueryHaveNoHeadIfTheyAreCutOff) {
  const std::vector<std::string> query{"events", "query", "--type", "order.placed"};
  EXPECT_THAT(list(query).out, HasSubstr("\"head\":4"));
  const Ran some = list({"events", "query", "--type", "order.placed", "--limit", "2"});
  EXPECT_THAT(lines_of(some.out), SizeIs(2));
  EXPECT_EQ(some.err, "more: --after 2\n");
  EXPECT_THAT(lines_of(list({"events", "query", "--type", "order.placed", "--limit", "3"}).out),
              SizeIs(4));
}

TEST_F(ToolLists, TailBeginsWithTheLastEventsThatItSelects) {
  std::string others;
  for (int i = 0; i < 20; ++i)
    others += R"({"stream":"bill-1","type":"bill.sent","data":{}})"
              "\n";
  append(others);
  EXPECT_THAT(listed({"events", "tail", "--type", "order.placed", "--limit", "3"}),
              ElementsAre("1", "2", "3"));
  EXPECT_THAT(listed({"events", "tail", "--stream", "order-1", "--limit", "2"}),
              ElementsAre("1", "4"));
  EXPECT_THAT(listed({"events", "tail", "--limit", "1"}), ElementsAre("15"));
  EXPECT_THAT(listed({"events", "tail", "--after", "20", "--limit", "1"}), ElementsAre("21"));
}

TEST_F(ToolLists, LookAtSoManyRowsOnly) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    lines += R"({"stream":"order-9","type":"order.sent","publish":true,"data":{}})"
             "\n";
  }
  append(lines);
  const Ran none = list({"outbox", "list", "--error", "no room"});
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("none among the first 20,000 messages; more: --after 20001, "
                                  "or --look-further"));
  EXPECT_EQ(list({"outbox", "list", "--error", "no room", "--after", "20001"}).err, "");
  EXPECT_EQ(list({"outbox", "list", "--error", "no room", "--look-further"}).err, "");

  const Ran oldest = list({"outbox", "list", "--newest-first", "--type", "order.placed"});
  EXPECT_THAT(oldest.err, HasSubstr("none among the newest 20,000 messages; more: --after 5"));
  EXPECT_THAT(
      listed({"outbox", "list", "--newest-first", "--type", "order.placed", "--look-further"}),
      ElementsAre("3", "2", "1"));

  const Ran newest = list({"events", "stats"});
  EXPECT_EQ(newest.err, "Of the newest 20,000 of 20,004 events; all: --look-further\n");
  EXPECT_THAT(lines_of(newest.out), SizeIs(1));
  const Ran all = list({"events", "stats", "--look-further"});
  EXPECT_EQ(all.err, "");
  EXPECT_THAT(lines_of(all.out), SizeIs(3));
}

TEST_F(ToolLists, PrintTablesWhileTheyRead) {
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    lines += R"({"stream":"note-)" + std::to_string(1000 + i) +
             R"(","type":"note.taken","data":{}})"
             "\n";
  }
  append(lines);
  append(R"({"stream":"note-2000-has-a-longer-name","type":"note.taken","data":{}})");
  const auto rows =
      lines_of(run_well({"streams", "list", "--db", db_, "--category", "note", "--limit", "1000"}));
  ASSERT_THAT(rows, SizeIs(302));
  EXPECT_EQ(rows[0].find("VERSION"), std::string{"note-1000  "}.size());
  EXPECT_EQ(rows[300].find("  1"), std::string{"note-1000"}.size() + 6);
  EXPECT_THAT(rows[301], HasSubstr("note-2000-has-a-longer-name        1"));
}

/// Three actions of the outbox, two of timers, and two of the journal, which tells the last again.
class ToolLog : public ToolLists {
 protected:
  void SetUp() override {
    ToolLists::SetUp();
    ASSERT_EQ(run({"timers", "list", "--db", db_}).code, 0);
    RawSqlite{db_}.run(
        "INSERT INTO outbox_actions (at, who, what, detail) VALUES (1000000, 'ann@shop', 'resize', "
        "'1 to 2'), (3000000, 'bob', 'retry', '2 messages'), (6000000, 'ann@shop', 'adopt', 'all');"
        "INSERT INTO outbox_actions (item_of, at, who, what, detail) VALUES "
        "(2, 3000000, 'bob', 'retry', 'order-1'), (2, 3000000, 'bob', 'retry', 'order-2');"
        "INSERT INTO stela_changes (at, part, subject, what, who, detail) VALUES "
        "(2000000, 'outbox', 'p03', 'stopped', '', 'gone'), "
        "(4000000, 'projections', 'sales', 'retried', 'ann@shop', 'event 7'), "
        "(6000000, 'outbox', 'all', 'adopted', 'ann@shop', '')");
  }
  std::vector<std::string> logged(std::vector<std::string> words) const {
    words.insert(words.begin(), "log");
    std::vector<std::string> found;
    for (const std::string& line : lines_of(list(words).out)) {
      found.push_back(member(line, "id"));
    }
    return found;
  }
};

TEST_F(ToolLog, IsARowAnActionFromEitherEnd) {
  EXPECT_THAT(logged({}), ElementsAre("o3", "c2", "o2", "o1"));
  EXPECT_THAT(logged({"--newest-first"}), SizeIs(4));
  EXPECT_THAT(logged({"--oldest-first"}), ElementsAre("o1", "o2", "c2", "o3"));
}

TEST_F(ToolLog, GoesOnPageByPage) {
  for (const bool is_forward : {false, true}) {
    std::vector<std::string> all;
    std::vector<std::string> words{"--limit", "1"};
    if (is_forward) words.emplace_back("--oldest-first");
    for (int page = 0; page < 9; ++page) {
      const auto found = logged(words);
      all.insert(all.end(), found.begin(), found.end());
      const auto call = [&] {
        auto asked = words;
        asked.insert(asked.begin(), "log");
        return list(asked).err;
      }();
      const std::size_t at = call.find("--after ");
      if (at == std::string::npos) break;
      words = {"--limit", "1", "--after", call.substr(at + 8, call.find('\n', at) - at - 8)};
      if (is_forward) words.emplace_back("--oldest-first");
    }
    EXPECT_EQ(all.size(), 4U);
    EXPECT_EQ(all.front(), is_forward ? "o1" : "o3");
    EXPECT_EQ(all.back(), is_forward ? "o3" : "o1");
  }
}

TEST_F(ToolLog, IsChosenByTimeAndOperator) {
  EXPECT_THAT(logged({"--who", "ann"}), ElementsAre("o3", "c2", "o1"));
  EXPECT_THAT(logged({"--who", "bob"}), ElementsAre("o2"));
  EXPECT_THAT(logged({"--since", "1970-01-01T00:00:03Z", "--until", "1970-01-01T00:00:05Z"}),
              ElementsAre("c2", "o2"));
  EXPECT_THAT(logged({"--since", "1970-01-01T00:00:03Z", "--oldest-first", "--until",
                      "1970-01-01T00:00:05Z"}),
              ElementsAre("o2", "c2"));
}

TEST_F(ToolLog, ShowsAnActionStepByStep) {
  const Ran shown = list({"log", "o2", "--limit", "1"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr(R"("id":"o2")"));
  EXPECT_THAT(shown.out, HasSubstr(R"("steps":[{"step":4,)"));
  EXPECT_THAT(shown.err, HasSubstr("more: --after 4"));
  EXPECT_THAT(run({"log", "o2", "--after", "4", "--db", db_}).out, HasSubstr("order-2"));
  EXPECT_THAT(run({"log", "c2", "--db", db_}).out, HasSubstr("sales: event 7"));
  EXPECT_EQ(run({"log", "o4", "--db", db_}).code, 3) << "a step is no action";
  EXPECT_EQ(run({"log", "c1", "--db", db_}).code, 3) << "nobody did it";
  EXPECT_EQ(run({"log", "17", "--db", db_}).code, 2);
  EXPECT_EQ(run({"log", "o2", "--who", "ann", "--db", db_}).code, 2);
}

}  // namespace
}  // namespace stela::test::lists_test
