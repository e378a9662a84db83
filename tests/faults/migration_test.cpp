// Migrations that are killed at every step, or run by several processes at once.
#include "faults/evidence.hpp"
#include "sqlite/core.hpp"
#include "support/fault_vfs.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace stela::migration_test {
namespace {

namespace fs = std::filesystem;
using test::FileCall;
using test::FileOperation;
using ::testing::Contains;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// Kills its process right before the n-th call that changes a file.
class KillAtNth final : public test::FileWatcher {
 public:
  explicit KillAtNth(int nth) : nth_{nth} {}

  void begin() noexcept { is_counting_ = true; }
  test::Verdict before(const FileCall& call) noexcept override {
    const bool changes =
        call.operation == FileOperation::write || call.operation == FileOperation::truncate ||
        call.operation == FileOperation::sync || call.operation == FileOperation::remove;
    if (is_counting_ && changes && ++counted_ == nth_) std::raise(SIGKILL);
    return test::Verdict::proceed;
  }

 private:
  const int nth_;
  int counted_ = 0;
  bool is_counting_ = false;
};

/// Everything that is in the database but times and ids: each table's definition and its rows.
std::string state_of(const std::string& path) {
  // Opened by Stela's rules, so that it stays as it was found.
  std::string state;
  test::RawSqlite database{path};
  sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  for (const std::string& row :
       database.rows("SELECT type, name, sql FROM sqlite_schema ORDER BY name")) {
    state += row + '\n';
  }
  if (state.find("stela_migrations") != std::string::npos) {
    for (const std::string& row :
         database.rows("SELECT module, number, checksum FROM stela_migrations")) {
      state += row + '\n';
    }
  }
  if (state.find("stela_facts") != std::string::npos) {
    state += "facts: " + std::to_string(database.integer("SELECT count(*) FROM stela_facts"));
  }
  if (state.find("TABLE sample") != std::string::npos) {
    for (const std::string& row : database.rows("SELECT * FROM sample")) state += row + '\n';
  }
  return state;
}

/// Runs `work` in children, each killed one step later, until one gets through. `prepare` makes the
/// file that each begins with; `look` sees what each leaves. How often it was killed.
int kill_at_every_step(const std::function<void()>& prepare,
                       const std::function<void(KillAtNth&, const std::string& vfs)>& work,
                       const std::function<void()>& look) {
  constexpr int limit = 2000;
  for (int nth = 1; nth < limit; ++nth) {
    prepare();
    test::Process child{[&] {
      KillAtNth killer{nth};
      const test::FaultVfs vfs{killer};
      work(killer, vfs.name());
    }};
    const bool is_through = child.wait() == 0;
    look();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "killed at step " << nth;
      return nth;
    }
    if (is_through) return nth - 1;
  }
  ADD_FAILURE() << "no run got through";
  return limit;
}

void remove_database(const std::string& path) {
  for (const std::string suffix : {"", "-wal", "-shm", "-lock", "-journal"}) {
    fs::remove(path + suffix);
  }
}

TEST(Migration, OfANewDatabaseIsNeverLeftHalfDone) {
  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(dir.file("whole.db"));
  const std::string whole = state_of(dir.file("whole.db"));
  std::set<std::string> seen;

  const int kills =
      kill_at_every_step([&] { remove_database(path); },
                         [&](KillAtNth& killer, const std::string& vfs) {
                           killer.begin();
                           (void)sqlite::open(path, {.vfs = vfs});
                         },
                         [&] {
                           seen.insert(fs::exists(path) ? state_of(path) : std::string{});
                           auto store = sqlite::open(path);
                           test::append(store, "order-1", "{}");
                           EXPECT_EQ(state_of(path), whole);
                           EXPECT_EQ(test::number_in(path,
                                                     "SELECT count(*) FROM stela_facts "
                                                     "WHERE name = 'store_id'"),
                                     1);
                           EXPECT_EQ(test::flaw_in(test::entries_of(store)), "");
                           EXPECT_EQ(test::integrity_of(path), "ok");
                         });

  EXPECT_GT(kills, 20);
  // Nothing; the ledger; the tables after each migration, with its line in the ledger; and the
  // facts beside them.
  const auto migrations = static_cast<std::size_t>(
      test::number_in(dir.file("whole.db"), "SELECT count(*) FROM stela_migrations"));
  EXPECT_LE(seen.size(), 3 + migrations);
  EXPECT_THAT(seen, Contains(std::string{}));
  EXPECT_THAT(seen, Contains(whole));
}

// --- migrations of a module

constexpr std::array<database::Migration, 3> sample_migrations{{
    {1, "sample",
     "CREATE TABLE sample (n INTEGER PRIMARY KEY, text TEXT);\n"
     "INSERT INTO sample VALUES (1, 'a'), (2, 'b'), (3, 'c');\n"
     "CREATE INDEX sample_text ON sample (text);"},
    {2, "more",
     "ALTER TABLE sample ADD COLUMN more INTEGER;\n"
     "UPDATE sample SET more = n * 10;\n"
     "DROP INDEX sample_text;\n"
     "CREATE INDEX sample_more ON sample (more);"},
    {3, "less", "DELETE FROM sample WHERE n = 2;\nCREATE TABLE sample_log (n INTEGER);"},
}};

std::span<const database::Migration> first_migrations(std::size_t count) {
  return std::span{sample_migrations}.first(count);
}

class ModuleMigration : public ::testing::Test {
 protected:
  ModuleMigration() {
    for (std::size_t count = 0; count <= sample_migrations.size(); ++count) {
      const std::string after = dir.file("after" + std::to_string(count) + ".db");
      {
        auto store = sqlite::open(after);
        store.database().migrate("sample", first_migrations(count));
      }
      steps.push_back(state_of(after));
    }
  }

  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  /// What a database holds after none, one, two and three of them.
  std::vector<std::string> steps;
};

TEST_F(ModuleMigration, HappensWholeOrNotAtAllWhereverItIsKilled) {
  std::set<std::string> seen;
  const auto run = [&](const std::string& vfs, KillAtNth* killer) {
    auto store = sqlite::open(path, {.vfs = vfs});
    if (killer != nullptr) killer->begin();
    store.database().migrate("sample", sample_migrations);
  };

  const int kills = kill_at_every_step(
      [&] {
        remove_database(path);
        (void)sqlite::open(path);
      },
      [&](KillAtNth& killer, const std::string& vfs) { run(vfs, &killer); },
      [&] {
        const std::string state = state_of(path);
        seen.insert(state);
        EXPECT_THAT(steps, Contains(state));
        run({}, nullptr);
        EXPECT_EQ(state_of(path), steps.back());
        EXPECT_EQ(test::integrity_of(path), "ok");
      });

  EXPECT_GT(kills, 15);
  EXPECT_THAT(seen, UnorderedElementsAre(steps.front(), steps.back()));
}

// --- several at once

/// Runs `work` in so many processes that all begin at once. What they wrote to the pipe, in words.
std::vector<std::string> all_at_once(int processes,
                                     const std::function<std::string(int process)>& work) {
  const test::Shared<std::atomic<int>> ready;
  const test::Pipe pipe;
  std::vector<std::unique_ptr<test::Process>> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(std::make_unique<test::Process>([&, i] {
      ++*ready;
      while (*ready < processes) std::this_thread::yield();
      pipe.write(work(i) + '\n');
    }));
  }
  for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
  std::istringstream answers{pipe.read_available()};
  return {std::istream_iterator<std::string>{answers}, {}};
}

class ManyAtOnce : public ::testing::TestWithParam<int> {};

TEST_P(ManyAtOnce, MakeOneDatabase) {
  const test::TempDir dir = test::TempDir::in_memory();
  for (int round = 0; round < 8; ++round) {
    const std::string path = dir.file("shop" + std::to_string(round) + ".db");
    const auto ids = all_at_once(GetParam(), [&](int process) {
      auto store = sqlite::open(path, {.busy_timeout = std::chrono::seconds{60}});
      test::append(store, "order-" + std::to_string(process), "{}");
      return store.id().to_string();
    });

    EXPECT_THAT(ids, SizeIs(GetParam()));
    EXPECT_THAT(std::set<std::string>(ids.begin(), ids.end()), SizeIs(1));
    auto store = sqlite::open(path);
    EXPECT_EQ(store.id().to_string(), ids.front());
    EXPECT_EQ(store.last_sequence(), GlobalSequence{GetParam()});
    EXPECT_EQ(test::flaw_of(path), "");
  }
}

TEST_P(ManyAtOnce, MigrateAModuleOnce) {
  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(path);
  all_at_once(GetParam(), [&](int) -> std::string {
    auto store = sqlite::open(path, {.busy_timeout = std::chrono::seconds{60}});
    store.database().migrate("sample", sample_migrations);
    return "done";
  });
  EXPECT_EQ(test::number_in(path, "SELECT count(*) FROM stela_migrations WHERE module = 'sample'"),
            3);
  EXPECT_EQ(test::number_in(path, "SELECT sum(more) FROM sample"), 40);
}

INSTANTIATE_TEST_SUITE_P(Processes, ManyAtOnce, ::testing::Values(2, 8),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::migration_test
