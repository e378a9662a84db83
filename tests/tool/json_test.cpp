// JSON has one vocabulary.
#include "description/description.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/json_walk.hpp"

#include <stela/eventstore/sqlite.hpp>

#include <gtest/gtest.h>

namespace stela::test::json_test {
namespace {

using tool::is_in_vocabulary;
using tool::Kind;

/// What it refuses no description can have: that is a compile error.
TEST(ToolJson, HasOneVocabularyInAllDescriptions) {
  for (const auto& [name, kind] : {std::pair{"lag_s", Kind::duration},
                                   {"parked_at", Kind::time},
                                   {"at", Kind::time},
                                   {"error", Kind::untrusted},
                                   {"correlation_id", Kind::text},
                                   {"schema_version", Kind::number},
                                   {"stream_version", Kind::number}}) {
    EXPECT_TRUE(is_in_vocabulary(name, kind)) << name;
  }
  for (const auto& [name, kind] : {std::pair{"lag", Kind::duration},
                                   {"per_s", Kind::real},
                                   {"pause_ms", Kind::number},
                                   {"pause_ms", Kind::duration},
                                   {"parked", Kind::time},
                                   {"parked_since", Kind::time},
                                   {"until", Kind::time},
                                   {"looked_at", Kind::text},
                                   {"version", Kind::number},
                                   {"last_error", Kind::untrusted},
                                   {"ts", Kind::time},
                                   {"advice", Kind::text},
                                   {"finding", Kind::text},
                                   {"correlation", Kind::text},
                                   {"causation", Kind::text},
                                   {"isAlive", Kind::flag},
                                   {"a b", Kind::text}}) {
    EXPECT_FALSE(is_in_vocabulary(name, kind)) << name;
  }
}

TEST(ToolJson, OfEveryCommandHasItOnSqlite) {
  const TempDir dir = TempDir::in_memory();
  const std::string db = dir.file("shop.db");
  Store store = sqlite::open(db);
  populate(store, db, [&](const std::string& sql) { RawSqlite{db}.run(sql); });
  check_json_of_every_command(db);
}

}  // namespace
}  // namespace stela::test::json_test
