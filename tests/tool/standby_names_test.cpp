#include "commands/standby_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::tool::standby_names_test {
namespace {

using ::testing::ElementsAre;

TEST(StandbyNames, AreThoseThatTheServerAccepts) {
  EXPECT_THAT(parse_standby_names("db2").names, ElementsAre("db2"));
  EXPECT_THAT(parse_standby_names("db2, \"Db 3\"").names, ElementsAre("db2", "db 3"));
  EXPECT_THAT(parse_standby_names("first 2 (db2, DB3,db4)").names,
              ElementsAre("db2", "db3", "db4"));
  EXPECT_THAT(parse_standby_names("\"a\"\"(b\", c").names, ElementsAre("a\"(b", "c"));
}

TEST(StandbyNames, SayHowManyConfirm) {
  EXPECT_EQ(parse_standby_names("db2, db3").wanted, 1);
  EXPECT_EQ(parse_standby_names("ANY 2 (db2, db3, db4)").wanted, 2);
  EXPECT_EQ(parse_standby_names("FIRST 1 (*)").wanted, 1);
  EXPECT_EQ(parse_standby_names("3 (db2, db3, db4)").wanted, 3);
}

TEST(StandbyNames, HaveNamesInAnyCase) {
  EXPECT_TRUE(parse_standby_names("ANY 1 (Db2)").has("dB2"));
  EXPECT_FALSE(parse_standby_names("ANY 1 (db2)").has("db20"));
  EXPECT_TRUE(parse_standby_names("*").has("anything"));
}

}  // namespace
}  // namespace stela::tool::standby_names_test
