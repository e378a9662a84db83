// A new version of an event is rolled out as docs/guides/roll-out-an-event-version.md says: two
// releases of one program side by side on one database, runners and writers, killed in between.
// Nobody presses a button, and each event is handled once.
#include "projections/models.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

namespace stela::rollout_test {
namespace {

using test::eventually;
using test::Process;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;

/// One release of rollout_program.cpp.
class Release {
 public:
  Release(const char* program, const std::string& path)
      : program_{program}, place_{test::location_of(path)} {}
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;

  void start() { runner_ = launch({"run"}); }
  void kill() { runner_.reset(); }
  /// Into `count` accounts that nobody has.
  void deposit(int first, int count) const {
    const auto writer = launch({"deposit", std::to_string(first), std::to_string(count)});
    ASSERT_EQ(writer->wait(), 0);
  }

 private:
  std::unique_ptr<Process> launch(std::vector<std::string> words) const {
    words.insert(words.begin(), place_.begin(), place_.end());
    words.insert(words.begin(), program_);
    return std::make_unique<Process>([words = std::move(words)]() mutable {
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(arguments.front(), arguments.data());
      throw std::runtime_error{"no " + words.front()};
    });
  }

  std::string program_;
  std::vector<std::string> place_;
  std::unique_ptr<Process> runner_;
};

class Rollout : public ::testing::Test {
 protected:
  /// The processes are forked while nobody here has the store.
  template <class F>
  auto look(F&& f) const {
    auto store = test::open_at(path_);
    return f(store);
  }
  std::vector<ProjectorStatus> status() const {
    return look([](Store& store) { return ProjectionOperations{store}.status(); });
  }
  bool are_driven() const {
    const auto all = status();
    return all.size() == 2 && !all[0].owner.empty() && !all[1].owner.empty();
  }
  /// Both have met a version that nobody who runs knows.
  bool are_left() const {
    const auto all = status();
    return all.size() == 2 && is_left(all[0]) && is_left(all[1]);
  }
  static bool is_left(const ProjectorStatus& one) {
    return one.owner.empty() && one.failing.value() > 0 && !one.stopped && one.attempts == 0;
  }
  bool have_handled(int deposits) const {
    return look([&](Store& store) {
      return store.last_sequence().value() == 2 * deposits && rows(store) == deposits;
    });
  }
  static std::int64_t rows(Store& store) {
    if (ProjectionOperations{store}.status().empty()) return 0;
    return ModelReader{store}.value<std::int64_t>("SELECT count(*) FROM deposits").value_or(0);
  }

  /// Each account has had one deposit of as many cents as its number, and one thank.
  void expect_handled_once(int deposits) const {
    EXPECT_TRUE(eventually([&] { return have_handled(deposits); }));
    look([&](Store& store) {
      ModelReader model{store};
      EXPECT_EQ(rows(store), deposits);
      EXPECT_EQ(model.value<std::int64_t>("SELECT count(DISTINCT account) FROM deposits"),
                deposits);
      EXPECT_EQ(model.value<std::int64_t>("SELECT sum(cents) FROM deposits"),
                std::int64_t{deposits} * (deposits + 1) / 2);
      int thanks = 0;
      for (const StoredEvent& event : store.read_all()) thanks += event.type() == "account.thanked";
      EXPECT_EQ(thanks, deposits);
    });
    EXPECT_THAT(status(), Each(AllOf(Field(&ProjectorStatus::stopped, false),
                                     Field(&ProjectorStatus::parked, 0),
                                     Field(&ProjectorStatus::error, ""))));
  }

  test::TempDir dir_;
  const std::string path_ = dir_.file("bank.db");
  Release first_{STELA_RELEASE_1, path_};
  Release second_{STELA_RELEASE_2, path_};
  Release third_{STELA_RELEASE_3, path_};
};

TEST_F(Rollout, InTwoStepsNeedsNobodyWhoeverComesFirst) {
  first_.start();
  ASSERT_TRUE(eventually([&] { return are_driven(); }));
  first_.deposit(1, 10);

  // Step 1, the old runner first: it drives on, as what the new release records is known to it.
  second_.start();
  second_.deposit(11, 10);
  first_.deposit(21, 10);
  expect_handled_once(30);
  first_.kill();
  second_.deposit(31, 10);
  first_.start();
  first_.deposit(41, 10);
  second_.kill();
  first_.deposit(51, 10);
  expect_handled_once(60);
  second_.start();
  first_.kill();

  // Step 2, from the new runner's side: both know both versions.
  third_.start();
  third_.deposit(61, 10);
  second_.deposit(71, 10);
  third_.kill();
  third_.deposit(81, 10);
  expect_handled_once(90);
  third_.start();
  second_.kill();
  second_.deposit(91, 10);
  expect_handled_once(100);
}

TEST_F(Rollout, AtOnceLeavesProjectorsToTheNewReleaseIfTheOldRunnerHasThem) {
  first_.start();
  ASSERT_TRUE(eventually([&] { return are_driven(); }));
  first_.deposit(1, 10);
  third_.deposit(11, 10);
  EXPECT_TRUE(eventually([&] { return are_left(); }));

  third_.start();
  expect_handled_once(20);
  // The new runner dies, and the old one meets events that it doesn't know once more.
  third_.kill();
  first_.deposit(21, 10);
  third_.deposit(31, 10);
  EXPECT_TRUE(eventually([&] { return are_left(); }));
  first_.kill();
  third_.start();
  first_.start();
  first_.deposit(41, 10);

  expect_handled_once(50);
}

TEST_F(Rollout, AtOnceLeavesProjectorsToTheNewReleaseIfItIsThereFirst) {
  third_.start();
  ASSERT_TRUE(eventually([&] { return are_driven(); }));
  first_.start();
  third_.deposit(1, 10);
  first_.deposit(11, 10);
  expect_handled_once(20);
  third_.kill();
  third_.deposit(21, 10);
  EXPECT_TRUE(eventually([&] { return are_left(); }));
  third_.start();
  expect_handled_once(30);
  first_.kill();
  first_.deposit(31, 10);

  expect_handled_once(40);
}

}  // namespace
}  // namespace stela::rollout_test
