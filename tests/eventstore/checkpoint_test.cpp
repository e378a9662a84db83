// A checkpoint that somebody asks for.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace stela::test::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Checkpoint : public ::testing::Test {
 protected:
  const TempDir dir = TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  const std::unique_ptr<Store> store =
      open_store(path, {.busy_timeout = std::chrono::milliseconds{20}});
};

TEST_F(Checkpoint, EmptiesTheLogIntoTheFile) {
  append(*store, "order-1", 100);
  ASSERT_GT(fs::file_size(path + "-wal"), 0U);

  const auto result = sqlite::checkpoint(*store);

  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.pages_left, 0);
  EXPECT_EQ(fs::file_size(path + "-wal"), 0U);
  fs::copy_file(path, dir.file("copy.db"));
  EXPECT_EQ(open_store(dir.file("copy.db"))->last_sequence(), GlobalSequence{100});
  EXPECT_EQ(append(*store, "order-1").last, GlobalSequence{101});
}

TEST_F(Checkpoint, TellsThatAReaderKeepsTheLog) {
  append(*store, "order-1");
  RawSqlite reader{path};
  reader.run("BEGIN; SELECT count(*) FROM events");
  append(*store, "order-1", 100);

  const auto held_up = sqlite::checkpoint(*store);
  EXPECT_FALSE(held_up.complete);
  EXPECT_GT(held_up.pages_left, 0);

  reader.run("COMMIT");
  EXPECT_TRUE(sqlite::checkpoint(*store).complete);
}

TEST_F(Checkpoint, IsRefusedInsideATransaction) {
  EXPECT_THAT(message_of<UsageError>(
                  [&] { store->transact([&](Transaction&) { sqlite::checkpoint(*store); }); }),
              HasSubstr("inside its own transaction"));
}

}  // namespace
}  // namespace stela::test::checkpoint_test
