// The tool shows the past: how things went, what changed, who did what, and what is known.
#include "tool/tool_outbox.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/projections/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::history_test {
namespace {

using test::Ran;
using test::RawSqlite;
using test::run;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Past : public test::ToolOutbox {
 protected:
  Ran stela(std::vector<std::string> words) const {
    words.insert(words.end(), {"--db", db_});
    return run(words);
  }
  /// Values of a series, so many minutes ago.
  void sample(const std::string& series, const std::vector<std::pair<int, int>>& values) {
    RawSqlite raw{db_};
    raw.run("INSERT INTO stela_series (name) VALUES ('" + series + "')");
    for (const auto& [ago, value] : values) {
      raw.run("INSERT INTO stela_samples SELECT series, strftime('%s', 'now') / 60 - " +
              std::to_string(ago) + ", " + std::to_string(value) +
              " FROM stela_series WHERE name = '" + series + "'");
    }
  }
};

TEST_F(Past, HasARowAMinuteAndNothingWhereNobodyLooked) {
  sample("outbox.published_total", {{4, 100}, {3, 160}, {1, 400}});
  sample("outbox.pending", {{3, 7}, {1, 0}});

  const Ran ran = stela({"outbox", "history", "--since", "5m", "--json"});

  // Of a total, what came in the minute; after a gap, in its last one.
  EXPECT_THAT(ran.out, AllOf(ContainsRegex("\"published\":60,\"published_per_second\":1,[^\n]*"
                                           "\"pending\":null,[^\n]*\n"
                                           "[^\n]*\"published\":null,[^\n]*\"pending\":7[^\n]*\n"
                                           "[^\n]*\"published\":240,[^\n]*\"pending\":null[^\n]*\n"
                                           "[^\n]*\"published\":null,[^\n]*\"pending\":0,"),
                             Not(HasSubstr("\"published\":100"))));
}

TEST_F(Past, HasLongerRows) {
  sample("outbox.published_total", {{7, 100}, {4, 160}, {1, 400}});

  const Ran ran = stela({"outbox", "history", "--since", "6m", "--by", "6m"});

  EXPECT_THAT(ran.out, ContainsRegex("\n2[^\n]* 300 +0.83 "));
}

TEST_F(Past, OfAPartitionIsCountedByItsBatches) {
  RawSqlite{db_}.run(
      "INSERT INTO outbox_batches VALUES (0, 2, 0, 1, 2, (strftime('%s', 'now') - 60) * 1000000, "
      "1, 2)");

  EXPECT_THAT(stela({"outbox", "history", "--since", "5m", "--partition", "all", "--json"}).out,
              AllOf(HasSubstr("\"published\":2"), HasSubstr("\"published\":0"),
                    HasSubstr("\"published\":null")))
      << "what was before the oldest batch isn't known";
}

TEST_F(Past, OfAPartitionSaysWhatWasSentAgain) {
  RawSqlite{db_}.run(
      "INSERT INTO outbox_batches VALUES "
      "(0, 2, 0, 1, 2, (strftime('%s', 'now') - 60) * 1000000, 1, 2), "
      "(0, 1, 7, 1, 1, (strftime('%s', 'now') - 60) * 1000000, 3, 3)");

  EXPECT_THAT(stela({"outbox", "history", "--since", "5m", "--partition", "all", "--json"}).out,
              AllOf(ContainsRegex("\"published\":3,[^\n]*\"sent_again\":1"),
                    ContainsRegex("\"published\":0,[^\n]*\"sent_again\":0")));
}

TEST_F(Past, OfAProjectorIsWhatItsRunnerNoted) {
  {
    Store store = sqlite::open(db_);
    const Projections makes_the_tables{store};
  }
  RawSqlite{db_}.run(
      "INSERT INTO projections (name, build, version, kind, state, position, began_at, changed_at) "
      "VALUES ('sales', 1, 1, 'async', 'living', 9, 0, 0), "
      "('mails', 1, 1, 'reaction', 'living', 9, 0, 0), "
      "('sales', 2, 2, 'async', 'building', 9, 0, 0)");
  sample("sales.position_total", {{4, 100}, {3, 160}, {1, 400}});
  sample("sales.lag_ms", {{3, 1500}});

  const std::string all = stela({"projections", "history", "--since", "5m", "--json"}).out;

  EXPECT_THAT(all, ContainsRegex("\"projector\":\"sales\",\"at\":[^\n]*\"handled\":60,"
                                 "\"handled_per_second\":1,\"lag_s\":null[^\n]*\n"
                                 "[^\n]*\"handled\":null,[^\n]*\"lag_s\":1.5[^\n]*\n"
                                 "[^\n]*\"handled\":240,"));
  EXPECT_EQ(test::lines_of(all).size(), 5) << "of the living build, and of none that nobody drives";
  EXPECT_THAT(stela({"projections", "history", "mails"}).out,
              AllOf(HasSubstr("mails"), Not(HasSubstr("sales"))));
  EXPECT_EQ(stela({"projections", "history", "nobody"}).code, 3);
  sample("mails.position_total", {{1, 1}});
  EXPECT_THAT(stela({"projections", "history", "--since", "6d"}).err, HasSubstr("name one"));
}

TEST_F(Past, RefusesWhatIsNoHistory) {
  EXPECT_THAT(stela({"outbox", "history", "--by", "1s"}).err, HasSubstr("--by is at least 1m"));
  EXPECT_THAT(stela({"outbox", "history", "--since", "700d"}).err, HasSubstr("use a longer --by"));
}

TEST_F(Past, TellsWhatChangedAndWhoDidIt) {
  RawSqlite{db_}.run(
      "INSERT INTO stela_changes (at, part, subject, what, who, detail) VALUES "
      "(1, 'outbox', 'p03', 'stopped', '', 'broker_lost: gone\x1b[2J'), "
      "(2, 'projections', 'sales', 'retried', 'ann', 'event 7')");

  const Ran changes = stela({"changes"});
  EXPECT_THAT(changes.out, AllOf(HasSubstr("sales"), HasSubstr("p03"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(changes.out.find("sales"), changes.out.find("p03"));
  EXPECT_THAT(stela({"changes", "--limit", "1"}).err, HasSubstr("more: --before 2"));
  EXPECT_THAT(stela({"changes", "--before", "2"}).out, Not(HasSubstr("sales")));
  EXPECT_THAT(stela({"log"}).out,
              AllOf(HasSubstr("ann"), HasSubstr("sales: event 7"), Not(HasSubstr("p03"))));
}

TEST_F(Past, OfAFindingThatIsKnownIsListedAndFine) {
  EXPECT_EQ(stela({"check"}).code, 2);
  EXPECT_THAT(stela({"findings", "ack", "outbox_unattended", "p01", "--why", "x"}).err,
              HasSubstr("nothing is wrong by the code outbox_unattended with 'p01'; there is one "
                        "without a subject\n"));

  EXPECT_EQ(stela({"findings", "ack", "outbox_unattended", "--why", "moving"}).code, 0);
  EXPECT_THAT(stela({"log", "--json"}).out, HasSubstr(R"("detail":"outbox_unattended: moving")"));
  EXPECT_THAT(stela({"findings", "ack", "outbox_unattended", "--why", "moving", "--json"}).out,
              StartsWith(R"({"code":"outbox_unattended","subject":null,"severity":"critical",)"));

  const Ran checked = stela({"check"});
  EXPECT_EQ(checked.code, 0);
  EXPECT_THAT(
      checked.out,
      AllOf(StartsWith("OK: nothing is wrong but what is known\nKNOWN: 3 messages are pending"),
            HasSubstr(": moving")));
  EXPECT_THAT(stela({"check", "--format", "nagios"}).out, HasSubstr("OK - nothing is wrong"));
  EXPECT_THAT(stela({"check", "--format", "json"}).out,
              AllOf(HasSubstr("\"severity\":\"known\""), HasSubstr("\"state\":\"ok\"")));
  EXPECT_THAT(stela({"findings", "known"}).out, HasSubstr("moving"));

  EXPECT_THAT(stela({"findings", "unack", "outbox_unattended", "--json"}).out,
              HasSubstr(R"("withdrawn":true)"));
  EXPECT_EQ(stela({"check"}).code, 2);
  EXPECT_EQ(stela({"findings", "unack", "outbox_unattended"}).code, 3);
}

TEST_F(Past, OfAFindingThatIsKnownEndsWhenItGrows) {
  park(1);
  EXPECT_EQ(stela({"findings", "ack", "outbox_parked", "--why", "asked the customer"}).code, 0);
  EXPECT_THAT(stela({"check"}).out, HasSubstr("KNOWN: 1 message parked"));

  park(2);

  EXPECT_THAT(stela({"check"}).out, HasSubstr("WARNING: 2 messages parked"));
}

TEST_F(Past, OfAFindingThatIsKnownEndsWithItsTime) {
  EXPECT_EQ(stela({"findings", "ack", "outbox_unattended", "--why", "moving", "--for", "1ms"}).code,
            0);

  EXPECT_EQ(stela({"check"}).code, 2);
}

TEST_F(Past, AcknowledgesOnlyWhatIsWrong) {
  EXPECT_THAT(stela({"findings", "ack", "no_such", "--why", "x"}).err,
              HasSubstr("there is no code 'no_such'"));
  EXPECT_EQ(stela({"findings", "ack", "outbox_parked", "--why", "x"}).code, 3);
  EXPECT_THAT(stela({"findings", "ack", "outbox_unattended"}).err, HasSubstr("--why"));
}

}  // namespace
}  // namespace stela::history_test
