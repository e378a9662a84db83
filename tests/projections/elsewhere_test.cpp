#include "projections/models.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace stela::elsewhere_test {
namespace {

using namespace std::chrono_literals;
using test::place;
using ::testing::ElementsAre;

/// Keeps its model in another database. What it wrote there stays when the checkpoint is rolled
/// back: the event's id tells that it was seen.
class Elsewhere {
 public:
  static constexpr ProjectorType projector_type{"elsewhere", 1};
  using Events = EventSet<test::OrderPlaced>;

  Elsewhere(std::string path, std::shared_ptr<int> deliveries, std::shared_ptr<bool> fails)
      : path_{std::move(path)}, deliveries_{std::move(deliveries)}, fails_{std::move(fails)} {}

  void create(ReadModel& model) {
    test::RawSqlite other{path_};
    other.run("CREATE TABLE IF NOT EXISTS seen (event_id TEXT PRIMARY KEY)");
    other.run("CREATE TABLE \"" + model.table("sales") + "\" (cents INTEGER NOT NULL)");
    other.run("INSERT INTO \"" + model.table("sales") + "\" VALUES (0)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    ++*deliveries_;
    test::RawSqlite other{path_};
    other.run("BEGIN IMMEDIATE");
    other.run("INSERT OR IGNORE INTO seen VALUES ('" + e.id().to_string() + "')");
    other.run("UPDATE \"" + model.table("sales") + "\" SET cents = cents + changes() * " +
              std::to_string(e->total_cents));
    other.run("COMMIT");
    if (*fails_) throw std::runtime_error{"after it was written"};
  }

 private:
  std::string path_;
  std::shared_ptr<int> deliveries_;
  std::shared_ptr<bool> fails_;
};

TEST(ModelElsewhere, SeesAnEventAgainAndKnowsItByItsId) {
  const test::TempDir dir = test::TempDir::in_memory();
  std::ofstream{dir.file("other.db")};
  const auto deliveries = std::make_shared<int>(0);
  const auto fails = std::make_shared<bool>(true);
  auto store = sqlite::open_in_memory();
  Projections projections{store};
  projections.add(Elsewhere{dir.file("other.db"), deliveries, fails},
                  {.retry_backoff = 0ms, .retry_backoff_max = 0ms});
  place(store, "1", 5);
  place(store, "2", 7);
  Runner runner{projections};

  runner.run_once();
  *fails = false;
  ProjectionOperations{store}.retry("elsewhere");
  runner.run_once();

  EXPECT_GT(*deliveries, 2);
  EXPECT_THAT(test::RawSqlite{dir.file("other.db")}.rows("SELECT cents FROM \"elsewhere@1.sales\""),
              ElementsAre("12"));
}

}  // namespace
}  // namespace stela::elsewhere_test
