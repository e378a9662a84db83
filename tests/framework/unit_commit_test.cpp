#include "support/counters.hpp"
#include "support/histories.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::unit_commit_test {
namespace {

using test::Added;
using test::DemandCounter;
using test::lines;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Runs what it is given inside the first append that it takes part in.
class Meddler : public TransactionParticipant {
 public:
  std::string_view name() const noexcept override { return "meddler"; }
  std::string_view detail() const noexcept override { return "1"; }
  void on_append(Transaction&, std::span<const StoredEvent>) override {
    if (const auto once = std::exchange(work, {})) once();
  }
  std::function<void()> work;
};

/// What code that a commit calls does to the unit that is being committed.
class UnitCommit : public ::testing::Test {
 protected:
  Subscription at_commit(std::function<void()> work) {
    return store.on_commit([work = std::move(work)](const CommitNotice&) mutable {
      if (const auto once = std::exchange(work, {})) once();
    });
  }
  void append(std::string_view stream) {
    unit.append(StreamId::parse(stream), ExpectedVersion::any(), Added{1});
  }
  /// Of the commit, which then stores nothing.
  std::string refusal_of_commit() {
    std::string refusal = message_of<UsageError>([&] { unit.commit(); });
    EXPECT_THAT(lines(store.read_all()), IsEmpty());
    return refusal;
  }

  const Id<DemandCounter> id = Id<DemandCounter>::from("1");
  Meddler meddler;
  test::RecordingLog log;
  testing::MemoryStore store{{.log = &log}};
  UnitOfWork unit{store};
};

TEST_F(UnitCommit, IsRefusedInsideItself) {
  for (int i = 0; i < 20; ++i) append("loose-" + std::to_string(i));
  std::string refusal;
  const Subscription committing = at_commit(
      [&] { refusal = message_of<UsageError>([&] { unit.commit({.append_id = "x"}); }); });
  unit.commit({.append_id = "x"});

  EXPECT_THAT(refusal, HasSubstr("while it is being committed"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{20});
  append("loose-0");
  EXPECT_EQ(unit.commit().last, GlobalSequence{21});
}

TEST_F(UnitCommit, RefusesAdditionsOfAListener) {
  append("loose-1");
  std::vector<std::string> refusals;
  const Subscription adding = at_commit([&] {
    const auto refused = [&](auto&& add) { refusals.push_back(message_of<UsageError>(add)); };
    refused([&] { append("loose-2"); });
    refused([&] { unit.add(DemandCounter{id}); });
    refused([&] { unit.in_transaction([](Transaction&) {}); });
  });
  unit.commit();

  EXPECT_THAT(refusals, ElementsAre(HasSubstr("while it is being committed"),
                                    HasSubstr("while it is being committed"),
                                    HasSubstr("while it is being committed")));
  unit.commit();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(UnitCommit, RefusesEventsThatAListenerRecords) {
  DemandCounter& counter = unit.add(DemandCounter{id});
  counter.add(1);
  const Subscription recording = at_commit([&] { counter.add(7); });
  unit.commit();

  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("while its unit of work is being committed")));
  EXPECT_EQ(counter.state().sum, 1);
}

TEST_F(UnitCommit, RefusesEventsThatAParticipantRecords) {
  store.attach(meddler);
  DemandCounter& counter = unit.add(DemandCounter{id});
  counter.add(1);
  meddler.work = [&] { counter.add(7); };

  EXPECT_THAT(refusal_of_commit(), HasSubstr("'counter-1' records an event while its unit"));
  counter.add(2);
  unit.commit();
  EXPECT_EQ(Repository<DemandCounter>{store}.load(id).state().sum, 3);
}

TEST_F(UnitCommit, ReadsWithTheUnitInsideItsWork) {
  DemandCounter counter{Id<DemandCounter>::from("2")};
  counter.add(5);
  Repository<DemandCounter>{store}.save(counter);
  append("loose-1");
  std::int64_t sum = 0;
  unit.in_transaction([&](Transaction&) {
    auto& loaded = unit.load(Id<DemandCounter>::from("2"));
    sum = loaded.state().sum;
    EXPECT_THROW(loaded.add(1), UsageError);
  });
  unit.commit();

  EXPECT_EQ(sum, 5);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(UnitCommit, RefusesAnAppendInsideItsWork) {
  append("loose-1");
  unit.in_transaction([&](Transaction&) { append("loose-2"); });

  EXPECT_THAT(refusal_of_commit(), HasSubstr("while it is being committed"));
}

TEST_F(UnitCommit, RefusesARequirementInsideItsWork) {
  const DemandCounter& counter = unit.add(DemandCounter{id});
  append("loose-1");
  unit.in_transaction([&](Transaction&) { unit.require_unchanged(counter); });

  EXPECT_THAT(refusal_of_commit(), HasSubstr("while it is being committed"));
}

TEST_F(UnitCommit, RefusesMoreWorkInsideItsWork) {
  append("loose-1");
  unit.in_transaction([&](Transaction&) {
    for (int i = 0; i < 20; ++i) unit.in_transaction([](Transaction&) {});
  });

  EXPECT_THAT(refusal_of_commit(), HasSubstr("while it is being committed"));
}

TEST_F(UnitCommit, MayBeTriedAgainAfterItFailed) {
  DemandCounter& counter = unit.add(DemandCounter{id});
  counter.add(1);
  bool failed = false;
  unit.in_transaction([&](Transaction&) {
    if (!std::exchange(failed, true)) throw std::runtime_error{"no"};
  });
  EXPECT_THROW(unit.commit(), std::runtime_error);
  counter.add(2);
  append("loose-1");
  unit.commit();

  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
}

}  // namespace
}  // namespace stela::unit_commit_test
