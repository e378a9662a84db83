// A server whose disk is full: of tables, or of its log.
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/postgres_server.hpp"
#include "support/small_disk.hpp"
#include "support/soundness.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela::postgres::full_disk_test {
namespace {

using test::append;
using test::SmallDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int limit = 100'000;
constexpr std::string_view needs_a_mount = "a file system can't be mounted here";

/// One that doesn't compress.
std::string payload_of(int number) {
  std::string payload(6'000, '"');
  std::uint64_t noise = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U + 1;
  for (std::size_t i = 1; i + 1 < payload.size(); ++i) {
    noise = noise * 6364136223846793005U + 1442695040888963407U;
    payload[i] = static_cast<char>('a' + (noise >> 60U));
  }
  return payload;
}

AppendResult append_one(Store& store, int number) {
  const std::string payload = payload_of(number);
  return append(store, "order-1", {NewEvent{"noted", 1, false, payload}}, std::to_string(number));
}

TEST(PostgresFullDisk, LosesNothingAndAllowsWritesOnceThereIsSpace) {
  SmallDisk disk{16};
  if (!disk.is_mounted()) GTEST_SKIP() << needs_a_mount;
  const test::PostgresServer server{{.durable = true}};
  server.make_tables_in(disk.file("tables"));
  Store store = open(server.url());
  append_one(store, 0);
  disk.fill_up(3'000'000);

  int appended = 1;
  const std::string said = test::message_of<StoreFull>([&] {
    for (; appended < limit; ++appended) append_one(store, appended);
  });

  EXPECT_GT(appended, 50);
  EXPECT_THAT(said, HasSubstr("the server's disk is full; nothing was written"));
  EXPECT_THROW(append_one(store, appended), StoreFull);
  EXPECT_EQ(store.last_sequence().value(), appended);

  disk.make_room();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(append_one(store, appended + i).repeated);
  EXPECT_EQ(store.last_sequence().value(), appended + 20);
  EXPECT_THAT(test::problems_of(store), IsEmpty());
}

TEST(PostgresFullDisk, OfTheLogEndsTheServerAndLosesNothing) {
  SmallDisk disk{24};
  if (!disk.is_mounted()) GTEST_SKIP() << needs_a_mount;
  test::PostgresServer server{{.durable = true,
                               .settings = "max_wal_size = 1GB\n"
                                           "checkpoint_timeout = 1h",
                               .log_folder = disk.file("log")}};
  Store store = open(server.url(), {.busy_timeout = std::chrono::seconds{2},
                                    .connect_timeout = std::chrono::seconds{1}});
  append_one(store, 0);
  disk.fill_up(500'000);

  int appended = 1;
  const std::string said = test::message_of<CommitInDoubt>([&] {
    for (; appended < limit; ++appended) append_one(store, appended);
  });
  EXPECT_THAT(said, HasSubstr("append again under the same append_id"));

  disk.make_room();
  server.crash();
  server.start_again();
  Store again = open(server.url());
  // The outcome of the last one may be unknown: its id tells.
  append_one(again, appended);
  EXPECT_EQ(again.last_sequence().value(), appended + 1);
  for (int i = 0; i <= appended; ++i) EXPECT_TRUE(append_one(again, i).repeated) << i;
  EXPECT_THAT(test::problems_of(again), IsEmpty());
}

}  // namespace
}  // namespace stela::postgres::full_disk_test
