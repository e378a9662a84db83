// Copies of a real database with bytes changed: either somebody says so, or everything that is
// stored reads as before.
#include "support/histories.hpp"
#include "support/random_history.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/transfer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stela::damaged_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t page_size = 4096;

void append_all(std::vector<std::string>& to, const std::vector<std::string>& lines) {
  to.insert(to.end(), lines.begin(), lines.end());
}

/// All that is stored, as SQL shows it and as Stela reads it. When migrations ran isn't part of it:
/// nothing depends on that. Nor is when an append id was used, which no checksum covers: see the
/// limitations.
std::vector<std::string> contents(Store& store) {
  std::vector<std::string> all;
  test::RawSqlite raw{sqlite::path(store)};
  for (const std::string table :
       {"events", "streams", "event_kinds", "snapshots", "stela_facts", "stela_participants"}) {
    append_all(all, raw.rows("SELECT * FROM " + table + " ORDER BY 1"));
  }
  append_all(all, raw.rows("SELECT append_id, first_sequence, last_sequence, checksum "
                           "FROM append_ids ORDER BY 1"));
  append_all(all, raw.rows("SELECT module, number, name, checksum FROM stela_migrations"));
  append_all(all, test::full_lines(store.read_all()));
  std::set<std::string> streams;
  for (const StreamId& stream : [&] {
         std::vector<StreamId> ids;
         for (const StoredEvent& event : store.read_all()) {
           if (streams.insert(event.stream.name()).second) ids.push_back(event.stream);
         }
         return ids;
       }()) {
    append_all(all, test::full_lines(store.read_stream(stream)));
    append_all(all,
               test::full_lines(store.read_stream(stream, {.direction = Direction::backward})));
    const auto snapshot = store.find_snapshot(stream, StreamVersion::max(), GlobalSequence::max());
    all.push_back(stream.name() + ' ' + (snapshot ? snapshot->payload : "none"));
  }
  return all;
}

class DamagedFile : public ::testing::Test {
 protected:
  DamagedFile() {
    auto store = test::open_store(
        path, {.durability = sqlite::Durability::relaxed, .clock = &clock, .random = &ids});
    test::RandomHistory{11, clock}.append_to(*store, 150);
    StoreOperations{*store}.index_links();
    expected = contents(*store);
    store.reset();
    std::ostringstream bytes;
    bytes << std::ifstream{path, std::ios::binary}.rdbuf();
    original = bytes.str();
  }

  enum class Outcome { refused, reported, harmless };

  Outcome look_at(const std::string& bytes) {
    fs::remove(path + "-wal");
    fs::remove(path + "-shm");
    std::ofstream{path, std::ios::binary | std::ios::trunc} << bytes;
    try {
      auto store = test::open_store(path, {.clock = &clock});
      const std::vector<std::string> problems = problems_and_advice(*store);
      if (problems.empty()) {
        EXPECT_EQ(contents(*store), expected);
      }
      store.reset();
      follow(problems);
      return problems.empty() ? Outcome::harmless : Outcome::reported;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), Not(HasSubstr("skip-damaged")));
      EXPECT_THAT(e.what(),
                  AnyOf(HasSubstr("restore a backup"), HasSubstr("PRAGMA application_id")));
      return Outcome::refused;
    }
  }

  std::vector<std::string> problems_and_advice(Store& store) {
    std::vector<std::string> problems;
    StoreOperations{store}.verify([&](const Problem& problem) {
      problems.push_back(to_string(problem));
      EXPECT_THAT(problem.what, Not(HasSubstr("restore a backup")));
    });
    return problems;
  }

  /// 'export --skip-damaged' works where one of them advises it.
  void follow(const std::vector<std::string>& problems) {
    const auto advises = [](const std::string& problem) {
      return problem.find("'export --skip-damaged'") != std::string::npos;
    };
    if (std::none_of(problems.begin(), problems.end(), advises)) return;
    std::ostringstream out;
    EXPECT_NO_THROW(salvage_events(*test::open_store(path, {.clock = &clock}), out,
                                   [](const UnreadableEvents&) {}))
        << ::testing::PrintToString(problems);
  }

  /// Damages `count` copies, one at a time.
  template <class Damage>
  void damage(int count, Damage&& damage_one) {
    std::map<Outcome, int> outcomes;
    std::mt19937 random{42};
    for (int i = 0; i < count && !HasFailure(); ++i) {
      std::string bytes = original;
      const std::string what = damage_one(bytes, random);
      SCOPED_TRACE(what);
      ++outcomes[look_at(bytes)];
    }
    RecordProperty("refused", outcomes[Outcome::refused]);
    RecordProperty("reported", outcomes[Outcome::reported]);
    RecordProperty("harmless", outcomes[Outcome::harmless]);
    EXPECT_THAT(outcomes[Outcome::refused] + outcomes[Outcome::reported], Gt(count / 4));
  }

  std::size_t any(std::mt19937& random, std::size_t below) {
    return std::uniform_int_distribution<std::size_t>{0, below - 1}(random);
  }

  test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  testing::ManualClock clock;
  test::SeededRandom ids{5};
  std::string original;
  std::vector<std::string> expected;
};

TEST_F(DamagedFile, IsHarmlessUndamaged) {
  EXPECT_EQ(look_at(original), Outcome::harmless);
  EXPECT_THAT(original.size() / page_size, Gt(40u));
}

TEST_F(DamagedFile, IsNoticedWhereverAByteFlips) {
  damage(500, [&](std::string& bytes, std::mt19937& random) {
    const std::size_t at = any(random, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << any(random, 8)));
    return "a bit of byte " + std::to_string(at);
  });
}

TEST_F(DamagedFile, IsNoticedWhereAByteOfThePageHeadersFlips) {
  damage(250, [&](std::string& bytes, std::mt19937& random) {
    const std::size_t at = any(random, bytes.size() / page_size) * page_size + any(random, 64);
    bytes[at] = static_cast<char>(any(random, 256));
    return "byte " + std::to_string(at);
  });
}

TEST_F(DamagedFile, IsNoticedWhereASectorIsEmpty) {
  damage(120, [&](std::string& bytes, std::mt19937& random) {
    const std::size_t at = any(random, bytes.size() / 512) * 512;
    bytes.replace(at, 512, 512, '\0');
    return "the sector at " + std::to_string(at);
  });
}

TEST_F(DamagedFile, IsNoticedWhenAPageIsDuplicated) {
  damage(120, [&](std::string& bytes, std::mt19937& random) {
    const std::size_t from = any(random, bytes.size() / page_size);
    const std::size_t to = any(random, bytes.size() / page_size);
    bytes.replace(to * page_size, page_size, original, from * page_size, page_size);
    return "page " + std::to_string(from + 1) + " over " + std::to_string(to + 1);
  });
}

TEST_F(DamagedFile, IsNoticedWherePagesAreExchanged) {
  damage(120, [&](std::string& bytes, std::mt19937& random) {
    const std::size_t one = any(random, bytes.size() / page_size);
    const std::size_t two = any(random, bytes.size() / page_size);
    bytes.replace(one * page_size, page_size, original, two * page_size, page_size);
    bytes.replace(two * page_size, page_size, original, one * page_size, page_size);
    return "pages " + std::to_string(one + 1) + " and " + std::to_string(two + 1);
  });
}

TEST_F(DamagedFile, IsNoticedWhereItsEndIsCutOff) {
  damage(60, [&](std::string& bytes, std::mt19937& random) {
    bytes.resize(any(random, bytes.size() - 1) + 1);
    return "cut to " + std::to_string(bytes.size());
  });
}

}  // namespace
}  // namespace stela::damaged_file_test
