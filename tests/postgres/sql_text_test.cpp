// SQL on its way to PostgreSQL.
#include "database/postgres/sql_text.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

namespace stela::postgres::sql_text_test {
namespace {

TEST(PostgresSqlText, WritesParametersWithDollars) {
  EXPECT_EQ(with_dollars("SELECT ?1 + ?12"), "SELECT $1 + $12");
  EXPECT_EQ(with_dollars("SELECT data ? 'key', a ?| b"), "SELECT data ? 'key', a ?| b");
}

TEST(PostgresSqlText, LeavesQuotedTextAndCommentsAlone) {
  for (const char* const sql : {"SELECT '?1 it''s ?1'", "SELECT \"?1\"", "SELECT 1 -- ?1\n",
                                "SELECT /* ?1 /* ?1 */ ?1 */ 1", "SELECT $$ ?1 $$",
                                "SELECT $tag$ ?1 $$ ?1 $tag$", R"(SELECT E'it\'s ?1')"}) {
    EXPECT_EQ(with_dollars(sql), sql);
  }
  EXPECT_EQ(with_dollars("SELECT 'a' || ?1 -- ?2\n|| ?3"), "SELECT 'a' || $1 -- ?2\n|| $3");
  EXPECT_EQ(with_dollars("SELECT price$?1"), "SELECT price$$1");
  EXPECT_EQ(with_dollars("SELECT 'open ?1"), "SELECT 'open ?1");
}

TEST(PostgresSqlText, FindsParameters) {
  using Numbers = std::set<std::size_t>;
  EXPECT_EQ(parameters_in("SELECT ?2, '?3', ?1 -- ?4\n, ?2, a ? 'b'"), (Numbers{1, 2}));
  EXPECT_EQ(parameters_in("SELECT $3, ?1, $$ $1 $$", '$'), (Numbers{3}));
}

TEST(PostgresSqlText, FindsNames) {
  EXPECT_TRUE(names("DROP TABLE Stela.events", "stela"));
  EXPECT_TRUE(names("DROP TABLE \"stela\".events", "stela"));
  EXPECT_TRUE(names("DROP TABLE \"a b\".events", "a b"));
  EXPECT_FALSE(names("DROP TABLE stela_mine -- stela\n", "stela"));
  EXPECT_FALSE(names("SELECT 'stela'", "stela"));
}

TEST(PostgresSqlText, NamesAnotherSchema) {
  EXPECT_EQ(in_schema("SELECT * FROM stela.events, stela.stela_facts", "a\"b"),
            "SELECT * FROM \"a\"\"b\".events, \"a\"\"b\".stela_facts");
  EXPECT_EQ(in_schema("SET search_path = stela, pg_temp", "shop"),
            "SET search_path = \"shop\", pg_temp");
  EXPECT_EQ(in_schema("SELECT mystela.x, 'stela'", "shop"), "SELECT mystela.x, 'stela'");
  EXPECT_EQ(in_schema("SELECT stela.x", "stela"), "SELECT stela.x");
}

TEST(PostgresSqlText, FindsTheFirstWord) {
  EXPECT_EQ(first_word("  -- why\n/* BEGIN */ Commit;"), "commit");
  EXPECT_EQ(first_word("(SELECT 1)"), "select");
  EXPECT_EQ(first_word(" ; "), "");
}

}  // namespace
}  // namespace stela::postgres::sql_text_test
