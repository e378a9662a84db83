#include "projections/models.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::newer_states_test {
namespace {

using test::place;
using test::Totals;
using ::testing::HasSubstr;

/// A database in which a newer version of Stela, whose tables allow it, has stored words of its
/// own.
class NewerStates : public ::testing::Test {
 protected:
  NewerStates() {
    Projections projections{store};
    projections.add(Totals<1>{test::throwing_at(
                        std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{1}))},
                    {.on_error = OnError::park, .max_attempts = 1});
    place(store, "1");
    Runner{projections}.run_once();
  }

  void write(const std::string& sql) {
    test::RawSqlite{path}.run("PRAGMA ignore_check_constraints = ON; " + sql);
  }

  test::TempDir dir = test::TempDir::in_memory();
  std::string path = dir.file("store.db");
  Store store = sqlite::open(path);
};

TEST_F(NewerStates, AreListedAsUnrecognized) {
  write("UPDATE projections SET kind = 'remote', state = 'frozen'");

  const auto status = ProjectionOperations{store}.status().at(0);

  EXPECT_EQ(status.name, "totals");
  EXPECT_EQ(status.kind, ProjectionKind::unrecognized);
  EXPECT_EQ(status.state, BuildState::unrecognized);
  EXPECT_EQ(to_string(status.state), "unrecognized");
}

TEST_F(NewerStates, OfParkedEventsAreListedAsUnrecognized) {
  write("UPDATE projection_parked SET state = 'delegated'");

  EXPECT_EQ(ProjectionOperations{store}.parked("totals").at(0).state,
            ParkedEventState::unrecognized);
}

TEST_F(NewerStates, StopWhoActsOnThem) {
  write("UPDATE projections SET state = 'frozen'");

  EXPECT_THAT(
      test::message_of<SchemaMismatch>([&] { ProjectionOperations{store}.retry("totals"); }),
      HasSubstr("for 'totals' that this Stela doesn't know"));
}

}  // namespace
}  // namespace stela::newer_states_test
