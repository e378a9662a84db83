#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test::embedding_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class ToolEmbedded : public ::testing::Test {
 protected:
  void SetUp() override {
    shop({"migrate"});
    for (const char* data :
         {R"({"customer":"Ada","total_cents":700})", R"({"customer":"Grace","total_cents":35})"}) {
      shop({"events", "append", "--stream", "bill-1", "--type", "order.placed", "--data", data});
    }
  }
  Ran shop(std::vector<std::string> words) const {
    return run(words, {.environment = {{"STELA_DB", db_}}, .program = STELA_EMBEDDING});
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

TEST_F(ToolEmbedded, ShowsStatesNowAndEarlier) {
  EXPECT_EQ(shop({"streams", "state", "bill-1", "--json"}).out,
            "{\"stream\":\"bill-1\",\"stream_version\":2,\"state\":{\"total_cents\":735}}\n");
  EXPECT_THAT(shop({"streams", "state", "bill-1", "--at", "1", "--json"}).out,
              HasSubstr("\"total_cents\":700"));
  EXPECT_EQ(shop({"streams", "state", "bill-1", "--at", "1h"}).code, 3);
  EXPECT_EQ(shop({"streams", "state", "bill-9"}).code, 3);
  const Ran plain = shop({"streams", "state", "order-1"});
  EXPECT_EQ(plain.code, 3) << plain.err;
}

TEST_F(ToolEmbedded, AppendsWhatItsTypesCannotReadOnlyWhenAskedTo) {
  const std::vector<std::string> unreadable{"events", "append",       "--stream", "bill-1",
                                            "--type", "order.placed", "--data",   "{}"};
  const Ran refused = shop(unreadable);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("order.placed v1 of bill-1 can't be read by this program"));
  EXPECT_EQ(
      shop({"events", "append", "--stream", "bill-1", "--type", "bill.unknown", "--data", "{}"})
          .code,
      2);
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM events"), 2);

  std::vector<std::string> unchecked = unreadable;
  unchecked.push_back("--unchecked");
  EXPECT_EQ(shop(unchecked).code, 0);
}

TEST_F(ToolEmbedded, DrivesAndRebuildsProjectors) {
  EXPECT_EQ(member(shop({"projections", "run", "--once", "--json"}).out, "scanned"), "2");
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM customers"), 2);
  const std::string listed = shop({"projections", "status", "--json"}).out;
  EXPECT_EQ(member(listed, "projector"), "customers");
  EXPECT_EQ(member(listed, "lag_events"), "0");
  EXPECT_EQ(member(shop({"projections", "rebuild", "--json"}).out, "complete"), "true");
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM customers"), 2);
  EXPECT_THAT(shop({"projections", "replay", "--stream", "bill-1", "--dry-run", "--json"}).out,
              HasSubstr("\"events\":2"));
  const Ran scratch = shop({"projections", "replay", "--to", "1", "--json"});
  EXPECT_EQ(member(scratch.out, "complete"), "true") << scratch.err;
  EXPECT_EQ(shop({"projections", "replay"}).code, 2);
  EXPECT_EQ(shop({"projections", "remove", "customers"}).code, 2);
  EXPECT_EQ(shop({"projections", "remove", "customers", "--yes"}).code, 0);
  EXPECT_EQ(shop({"projections", "status", "--json"}).out, "");
}

TEST_F(ToolEmbedded, AnInlineProjectorIsLeftBehindOnlyWhenAskedTo) {
  const std::vector<std::string> place{
      "events", "append",       "--stream", "bill-1",
      "--type", "order.placed", "--data",   R"({"customer":"Ada","total_cents":1})"};
  const auto with_tally = [&](const std::vector<std::string>& words) {
    return run(words, {.environment = {{"STELA_DB", db_}, {"SHOP_TALLY", "1"}},
                       .program = STELA_EMBEDDING});
  };
  const auto tallied = [&] { return RawSqlite{db_}.integer("SELECT count(*) FROM tally"); };
  EXPECT_EQ(with_tally(place).code, 0);
  EXPECT_EQ(tallied(), 3);

  const Ran refused = shop(place);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("'projector:tally'"));
  EXPECT_THAT(refused.err, HasSubstr("--leave-behind"));
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM events"), 3);

  auto words = place;
  words.emplace_back("--leave-behind");
  const Ran left = shop(words);
  EXPECT_EQ(left.code, 0) << left.err;
  EXPECT_THAT(left.err, HasSubstr("'tally' is detached"));
  EXPECT_EQ(tallied(), 3);

  // Whoever knows it catches it up first.
  EXPECT_EQ(with_tally(place).code, 0);
  EXPECT_EQ(tallied(), 5);
}

TEST_F(ToolEmbedded, ShowsWhoHandlesWhatWithoutRegisteringIt) {
  shop({"projections", "remove", "customers", "--yes"});
  const std::string types =
      R"("event_types":[{"category":"bill","type":"order.placed","publishes":true,)";
  EXPECT_THAT(
      shop({"topology", "--json"}).out,
      AllOf(
          HasSubstr("{\"types_known\":true,\"outbox\":false," + types),
          HasSubstr(R"({"category":"order","type":"order.shipped","publishes":true,)"
                    R"("is_recorded":false})"),
          HasSubstr(R"({"follower":"customers","kind":"async","handles":["order.placed"],)"
                    R"("timers":[],"broker_stream":null,"filter":null,"is_in_database":false})")));
  EXPECT_THAT(shop({"topology"}).out, ContainsRegex("bill +order.placed +yes +yes +customers\n"));
  EXPECT_EQ(RawSqlite{db_}.integer("SELECT count(*) FROM projections"), 0);

  shop({"projections", "run", "--once"});
  EXPECT_THAT(shop({"topology", "--json"}).out, HasSubstr("\"is_in_database\":true"));
  const Ran plain = run({"topology", "--db", db_, "--json"});
  EXPECT_THAT(plain.out, AllOf(HasSubstr("{\"types_known\":false,"),
                               HasSubstr(R"({"follower":"customers","kind":"async",)"
                                         R"("handles":null,"timers":null,)")));
  EXPECT_THAT(run({"topology", "--db", db_}).err, HasSubstr("the application's own tool"));
}

TEST_F(ToolEmbedded, GoesByItsOwnName) {
  EXPECT_THAT(shop({"version"}).out, HasSubstr("shop 3.1, Stela "));
  EXPECT_THAT(shop({"events", "lsit"}).err, HasSubstr("shop: there is no command"));
  EXPECT_THAT(shop({"events", "list", "--help"}).out, HasSubstr("shop events list --since 1h"));
}

}  // namespace
}  // namespace stela::test::embedding_test
