// A disk that is really full, and a limit to the size of files, which fails as a quota does.
#include "faults/evidence.hpp"
#include "faults/trial.hpp"
#include "support/small_disk.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace stela::full_disk_test {
namespace {

using test::append;
using test::PlainAppend;
using test::SmallDisk;
using test::Trial;
using ::testing::HasSubstr;

constexpr int limit = 100'000;

std::string big_payload() {
  std::string payload(3002, 'x');
  payload.front() = payload.back() = '"';
  return payload;
}

/// How many appends were acknowledged before the disk was full.
int append_until_full(Store& store, std::string_view stream) {
  for (int appended = 0; appended < limit; ++appended) {
    try {
      append(store, stream, big_payload());
    } catch (const StoreFull& e) {
      EXPECT_THAT(e.what(), HasSubstr("nothing was written; free some space and try again"));
      return appended;
    }
  }
  return limit;
}

class FullDisk : public ::testing::TestWithParam<int> {};

TEST_P(FullDisk, LosesNothingAndAllowsWritesOnceThereIsSpace) {
  SmallDisk disk{8};
  const std::string path = disk.file("shop.db");
  auto store = sqlite::open(path, {.checkpoint_pages = GetParam()});
  append(store, "order-1", "{}");
  disk.fill_up(2'000'000);

  const int first = append_until_full(store, "order-1");
  EXPECT_GT(first, 50);
  EXPECT_LT(first, limit);
  EXPECT_LE(append_until_full(store, "order-2"), 2);
  const auto kept = test::entries_of(store);
  EXPECT_GE(kept.size(), static_cast<std::size_t>(first) + 1);
  EXPECT_EQ(test::flaw_in(kept), "");

  disk.make_room();
  const std::int64_t before = store.last_sequence().value();
  for (int i = 0; i < 20; ++i) append(store, "order-1", big_payload());
  EXPECT_EQ(store.last_sequence(), GlobalSequence{before + 20});
  EXPECT_EQ(test::flaw_of(path), "");
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, FullDisk, ::testing::Values(20, 4000),
                         ::testing::PrintToStringParamName());

/// Fills the disk in a savepoint, and does as if nothing had happened.
void swallow_full_disk(Transaction& transaction) {
  const StreamId stream = StreamId::parse("order-2");
  const std::string payload = big_payload();
  const NewEvent event{"a", 1, false, payload};
  const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
  EXPECT_THROW(transaction.transact([&](Transaction& inner) {
    for (int i = 0; i < limit; ++i) inner.append({.streams = {&one, 1}});
  }),
               StoreFull);
}

TEST(FullDisk, IsReportedAgainIfItsTransactionContinues) {
  SmallDisk disk{8};
  const std::string path = disk.file("shop.db");
  auto store = sqlite::open(path);
  append(store, "order-1", "{}");
  disk.fill_up(1'500'000);

  EXPECT_THROW(store.transact([](Transaction& transaction) { swallow_full_disk(transaction); }),
               StoreFull);
  EXPECT_THROW(store.transact([](Transaction& transaction) {
    swallow_full_disk(transaction);
    transaction.transact([](Transaction&) {});
  }),
               StoreFull);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});

  disk.make_room();
  append(store, "order-1", big_payload());
  EXPECT_EQ(test::flaw_of(path), "");
}

TEST(FullDisk, IsReportedToEveryThread) {
  SmallDisk disk{8};
  const std::string path = disk.file("shop.db");
  auto store = sqlite::open(path);
  disk.fill_up(1'500'000);
  std::atomic<int> acknowledged{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] { acknowledged += append_until_full(store, "order-1"); });
    }
  }
  EXPECT_EQ(store.last_sequence(), GlobalSequence{acknowledged.load()});

  disk.make_room();
  append(store, "order-1", big_payload());
  EXPECT_EQ(store.last_sequence(), GlobalSequence{acknowledged.load() + 1});
  EXPECT_EQ(test::flaw_of(path), "");
}

TEST(FullDisk, CausesNoConflictWithUncommittedEvents) {
  Trial trial{{{test::FileOperation::write}, test::Verdict::disk_full, 1, true}};
  auto store = trial.open_healthy({});
  trial.arm();
  std::atomic<int> full{0};
  std::atomic<int> others{0};
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ready{0};
    std::vector<std::jthread> writers;
    // Who writes first holds the others up until all of them want to.
    store.transact([&](Transaction&) {
      for (int i = 0; i < 8; ++i) {
        writers.emplace_back([&] {
          const StreamId stream = StreamId::parse("order-never");
          const NewEvent event{"a", 1, false, "{}"};
          const StreamAppend first{stream, ExpectedVersion::none(), {&event, 1}};
          ++ready;
          try {
            store.append({.streams = {&first, 1}});
          } catch (const Error& e) {
            ++(e.code() == ErrorCode::store_full ? full : others);
          }
        });
      }
      while (ready < 8) std::this_thread::yield();
    });
  }

  EXPECT_EQ(full, 20 * 8);
  EXPECT_EQ(others, 0);
}

TEST(FullDisk, DoesNotKeepADatabaseFromBeingOpenedAndRead) {
  SmallDisk disk{8};
  const std::string path = disk.file("shop.db");
  int appended = 0;
  {
    auto store = sqlite::open(path);
    disk.fill_up(1'000'000);
    appended = append_until_full(store, "order-1");
  }
  disk.fill_up(40'000);
  auto store = sqlite::open(path);
  EXPECT_EQ(test::entries_of(store).size(), static_cast<std::size_t>(appended));
  EXPECT_THROW(append(store, "order-1", std::string(1'000'000, 'x')), StoreFull);

  disk.make_room();
  EXPECT_NO_THROW(append(store, "order-1", big_payload()));
}

TEST(FullDisk, LeavesNoHalfOfANewDatabase) {
  // Fifteen databases fit.
  SmallDisk disk{4};
  for (std::size_t bytes_left = 0; bytes_left < 300'000; bytes_left += 20'000) {
    disk.fill_up(bytes_left);
    const std::string path = disk.file("shop" + std::to_string(bytes_left) + ".db");
    try {
      auto store = sqlite::open(path);
      append(store, "order-1", "{}");
    } catch (const StoreFull&) {
    }
    disk.make_room();
    auto store = sqlite::open(path);
    append(store, "order-1", "{}");
    EXPECT_EQ(test::integrity_of(path), "ok");
    EXPECT_EQ(test::flaw_in(test::entries_of(store)), "");
  }
}

/// SQLite ends the transaction on its own when a page can't be written before the commit: what the
/// caller does behind that must not become a transaction of its own.
TEST(FullDisk, AllowsNoWriteAfterATransactionThatItEnded) {
  SmallDisk disk{8};
  auto store = sqlite::open(disk.file("shop.db"));
  append(store, "order-1", "{}");
  disk.fill_up(1'000'000);
  const PlainAppend big{StreamId::parse("order-1"), ExpectedVersion::any(),
                        std::vector<std::string>(100, std::string(60'000, 'x'))};

  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    EXPECT_THROW(append(transaction, {big}), StoreFull);
    EXPECT_THROW(append(transaction, "order-2", "{}"), StoreFull);
  }),
               StoreFull);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  EXPECT_EQ(test::flaw_of(sqlite::path(store)), "");
}

TEST(FileSizeLimit, IsAFullDisk) {
  const test::TempDir dir;
  auto store = sqlite::open(dir.file("shop.db"));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1'000'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);

  const int appended = append_until_full(store, "order-1");
  EXPECT_LE(append_until_full(store, "order-1"), 2);
  setrlimit(RLIMIT_FSIZE, &before);

  EXPECT_GT(appended, 20);
  append(store, "order-1", big_payload());
  EXPECT_GE(store.last_sequence(), GlobalSequence{appended + 1});
  EXPECT_EQ(test::flaw_of(sqlite::path(store)), "");
}

}  // namespace
}  // namespace stela::full_disk_test
